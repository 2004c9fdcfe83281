"""What happens to the rows of a load, batch by batch: pure functions over Arrow that do not depend
on where they run. A process and a Spark executor run the same ones."""
