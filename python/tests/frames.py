"""What the tests of the frames begin with: which frames are here."""
import importlib.metadata
import os
import unittest

# The frames, and what each of their tests imports.
PACKAGES = {"torch": ("torch",), "lightning": ("torch", "lightning"),
            "transformers": ("torch", "transformers", "accelerate"),
            "accelerate": ("torch", "accelerate"),
            "deepspeed": ("torch", "deepspeed"),
            "jax": ("jax", "orbax-checkpoint"),
            "peft": ("torch", "transformers", "peft")}
REQUIRED = os.environ.get("PENSTOCK_REQUIRE_FRAMES") == "1"


def versions(frame):
    """"torch 2.15.0, lightning 2.6.6"; None for a package that is missing."""
    try:
        return ", ".join(f"{package} {importlib.metadata.version(package)}"
                         for package in PACKAGES[frame])
    except importlib.metadata.PackageNotFoundError:
        return None


def needs(frame):
    """Skips a test where its frame is not, or fails it where all frames are
    required."""
    def decorate(test):
        if versions(frame) is not None:
            return test
        why = f"{frame} is not there: " + " ".join(PACKAGES[frame])
        if not REQUIRED:
            return unittest.skip(why)(test)

        def missing(self):
            self.fail(f"{why}; PENSTOCK_REQUIRE_FRAMES=1 asks for it")
        return missing
    return decorate
