"""From points to pictures: what each plot shows, on which panels, and the files it becomes."""
