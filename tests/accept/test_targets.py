"""What may be named: a module, an attribute, a file."""

from __future__ import annotations

import pytest

from tprof.accept.targets import find_specs
from tprof.errors import UsageError


def test_a_file_and_one_of_its_attributes(root):
    planted = root / "tests" / "support" / "planted.py"
    assert [spec.name for spec in find_specs(str(planted))][:2] == ["good", "mean"]
    assert [spec.name for spec in find_specs(f"{planted}:MEAN")] == ["mean"]


def test_a_module():
    assert [spec.name for spec in find_specs("tprof_kernels.softmax")] == ["softmax"]


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("no.such.module", "no.such.module: No module named"),
        ("absent.py", "absent.py is no file"),
        ("tprof.errors", "tprof.errors has no SPECS of KernelSpec"),
        ("tprof_kernels.softmax:softmax", "has no softmax of KernelSpec"),
    ],
)
def test_what_is_none(target, said):
    with pytest.raises(UsageError, match=said):
        find_specs(target)
