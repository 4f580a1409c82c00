"""Measurements, each a module to be run from the project's root; the product imports none of it."""
