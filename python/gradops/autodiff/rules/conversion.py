"""Derivatives: conversion. Casting back to the argument's dtype is the engine's work."""

from ..record import derivative

derivative("cast", x=lambda g: g)
derivative("copy", x=lambda g: g)
