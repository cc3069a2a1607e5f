"""What a trial of each experiment does: a job in, a row out."""
