"""The steps of a recurrent model's pass: its units, its one vector, and its attention."""
