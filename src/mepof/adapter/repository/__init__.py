"""Repositories from which package managers install and upgrade: one for each format of packages."""
