"""`fit`: what goes on around the learners."""
