"""The languages: `.pg` schemas and `.gq` queries, from text to checked values and back. Pure; it
knows neither plans nor storage."""
