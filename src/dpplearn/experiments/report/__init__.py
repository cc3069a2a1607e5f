"""From rows to tables, verdicts, figures and the page."""
