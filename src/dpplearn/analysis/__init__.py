"""What data or a model say."""
