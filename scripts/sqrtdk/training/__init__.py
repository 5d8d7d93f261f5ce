"""Small attention models trained with and without a scale: tasks, model, optimisers, runs and what they show."""
