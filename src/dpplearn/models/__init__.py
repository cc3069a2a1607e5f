"""What a user holds, and how it is kept."""
