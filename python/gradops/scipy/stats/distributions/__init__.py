"""Families of distributions: a file for each, or for a few close relatives; ``scipy.stats`` has their objects."""
