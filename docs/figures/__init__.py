"""The figures of the manual, drawn from data that ship as code."""
