"""Text to checked values and back: `.pg` schemas today. Pure; knows neither plans nor storage."""
