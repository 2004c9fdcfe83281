"""What a notebook shows of a graph: tables, pictures, histories, changes. Everything that is shown
was written by somebody, so all of it is text, never markup or script."""
