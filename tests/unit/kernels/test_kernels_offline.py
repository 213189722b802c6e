"""What a launch under the interpreter comes to for a compiler: types, constants, what is a multiple of 16."""

from types import SimpleNamespace

import pytest
from click.testing import CliRunner

from repro.cli.kernels import kernels
from repro.errors import UsageError
from repro.trial.kernels.launches import Launches, described
from repro.trial.kernels.offline import NotCompiled, find_kernel, specialised


def kernel(x, n, scale, flag, rest, BLOCK=64):  # noqa: N803
    """What is launched here."""


class Tensor:
    """As much of a tensor as a launch looks at."""

    def __init__(self, dtype="torch.float32", address=0):
        self.dtype, self._address = dtype, address

    def data_ptr(self):
        return self._address


EXECUTOR = SimpleNamespace(
    fn=kernel, arg_names=["x", "n", "scale", "flag", "rest", "BLOCK"], constexprs=["BLOCK"]
)


def params(**own):
    usual = {"do_not_specialize": False, "do_not_specialize_on_alignment": False, "annotation_type": ""}
    return SimpleNamespace(
        params=[SimpleNamespace(name=name, **{**usual, **own.get(name, {})}) for name in EXECUTOR.arg_names]
    )


def noted(*args, **kwargs):
    return described(EXECUTOR, args, kwargs)


def test_types_constants_and_alignment():
    note = noted(Tensor(address=32), 48, 2.0, True, None, num_warps=2, grid=(1,), BLOCK=(4, 8))
    assert note["options"] == {"num_warps": 2}
    assert specialised(params(), note["arguments"]) == (
        {"x": "*fp32", "n": "i32", "scale": "fp32", "flag": "i1"},
        {"rest": None, "BLOCK": (4, 8)},
        [0, 1],
    )


def test_what_triton_would_not_specialise_on():
    arguments = noted(Tensor(address=32), 1, 2.0, 2**31, 2**63, BLOCK=64)["arguments"]
    types, constants, aligned = specialised(params(), arguments)
    assert (types, constants, aligned) == (
        {"x": "*fp32", "scale": "fp32", "flag": "i64", "rest": "u64"}, {"n": 1, "BLOCK": 64}, [0, 3, 4],
    )  # fmt: skip
    fixed = {"n": {"do_not_specialize": True}, "x": {"do_not_specialize_on_alignment": True}}
    types, constants, aligned = specialised(
        params(**fixed, flag={"annotation_type": "u64"}, rest={"do_not_specialize": True}), arguments
    )
    assert (types["n"], types["flag"], constants, aligned) == ("i32", "u64", {"BLOCK": 64}, [3])


def test_an_argument_of_an_unknown_kind_is_said():
    for value, why in ((Tensor("torch.complex64"), "a tensor of torch.complex64"), (object(), "a object")):
        with pytest.raises(NotCompiled, match=f"argument x is {why}"):
            specialised(params(), noted(value, 1, 1.0, True, None)["arguments"])


def test_the_same_launch_is_noted_once():
    launches = Launches()
    for n in (3, 5, 16, 3):
        launches.add(EXECUTOR, (Tensor(), n, 1.0, True, None), {})
    assert len(launches.take()) == 2  # 3 and 5 make one kernel, 16 another
    assert launches.take() == []


def test_a_kernel_that_is_not_at_the_top_of_its_module():
    with pytest.raises(NotCompiled, match="no kernel of that name at its top level"):
        find_kernel({"kernel": "other", "module": __name__, "file": __file__})


@pytest.mark.parametrize("options", [["--arch", "hopper"], ["--arch", "sm_90", "--measure"]])
def test_an_architecture_that_makes_no_sense(options):
    result = CliRunner().invoke(kernels, options)
    assert isinstance(result.exception, UsageError)
