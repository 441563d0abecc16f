"""Image classifiers that explain themselves."""
