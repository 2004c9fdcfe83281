"""History: refs, log, feed, diff, the life of an entity, and going back."""
