"""No op leaves native code in a loop, but for the reasons that are told: the walk over all ops of :mod:`native_loops`."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given
from native_loops import CALLED, LEFT, explained, met
from test_facts import CASES_OF, few
from test_native import needs_machine
from test_rules import PUBLIC, examples, quietly

from gradops.ops._dispatch import registry
