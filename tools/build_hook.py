"""Hatchling's build hook: writes the type stubs, which git does not keep, before a package is built or installed."""

import subprocess
import sys

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class Stubs(BuildHookInterface):
    def initialize(self, version, build_data):
        subprocess.run([sys.executable, "tools/stubs"], cwd=self.root, check=True)
