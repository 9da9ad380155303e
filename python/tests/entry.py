"""How a file of tests is run: python NAME_test.py [unittest's arguments].

Exit code 77 when every test was skipped, for ctest, which then says that the
file was skipped and not that it passed.
"""
import sys
import unittest

ALL_SKIPPED = 77


class _Result(unittest.TextTestResult):
    passed = 0

    def addSuccess(self, test):
        super().addSuccess(test)
        self.passed += 1


class _Runner(unittest.TextTestRunner):
    resultclass = _Result


def main():
    result = unittest.main(exit=False, testRunner=_Runner).result
    if not result.wasSuccessful():
        sys.exit(1)
    if result.skipped:
        print(f"{len(result.skipped)} skipped:",
              *sorted({why for _, why in result.skipped}), sep="\n  ")
        if not result.passed:
            sys.exit(ALL_SKIPPED)
