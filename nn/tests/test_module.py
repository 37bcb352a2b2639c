"""What a module registers, how it is walked, and how it shows itself."""

from __future__ import annotations

import copy
import pickle

import pytest

import flambeau as fb
from flambeau import nn
from flambeau.nn.modules import module as hooks


class Block(nn.Module):
    """One of everything: a parameter, a buffer, a hidden buffer, a child."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(fb.ones(2))
        self.register_buffer("mean", fb.zeros(2))
        self.register_buffer("cache", fb.zeros(3), persistent=False)
        self.layer = nn.Linear(2, 2)
        self.register_parameter("nothing", None)
        self.note = "plain"

    def forward(self, x):
        return self.layer(x) * self.scale + self.mean


def test_assignment_registers_by_kind():
    block = Block()
    assert [n for n, _ in block.named_parameters()] == ["scale", "layer.weight", "layer.bias"]
    assert [n for n, _ in block.named_buffers()] == ["mean", "cache"]
    assert [n for n, _ in block.named_children()] == ["layer"]
    assert list(block.state_dict()) == ["scale", "mean", "layer.weight", "layer.bias"]
    assert block.nothing is None and block.note == "plain"


def test_a_name_moves_between_tables_when_it_is_assigned_anew():
    block = Block()
    block.mean = nn.Parameter(fb.ones(1))
    assert "mean" in dict(block.named_parameters()) and "mean" not in dict(block.named_buffers())
    block.scale = nn.ReLU()
    assert "scale" in dict(block.named_children()) and "scale" not in dict(block.named_parameters())
    block.note = nn.Parameter(fb.ones(1))
    assert "note" in dict(block.named_parameters()) and "note" not in vars(block)


def test_a_registered_name_takes_none_and_its_own_kind_only():
    block = Block()
    with pytest.raises(TypeError, match=r"as parameter 'scale' \(torch.nn.Parameter or None"):
        block.scale = fb.ones(2)
    with pytest.raises(TypeError, match=r"as child module 'layer' \(torch.nn.Module or None"):
        block.layer = 3
    with pytest.raises(TypeError, match="as buffer 'mean'"):
        block.mean = 3
    block.scale = block.layer = block.mean = None
    assert list(block.parameters()) == [] and list(block.children()) == []
    assert [n for n, _ in block.named_buffers()] == ["cache"]
    block.scale = nn.Parameter(fb.zeros(1))
    assert block.scale.item() == 0.0


def test_a_tensor_assigned_to_a_buffer_stays_a_buffer():
    block = Block()
    block.mean = fb.ones(2)
    assert block.state_dict()["mean"].tolist() == [1.0, 1.0]
    block.cache = fb.ones(3)
    assert "cache" not in block.state_dict()


def test_deleting_an_attribute_unregisters_it():
    block = Block()
    del block.scale, block.cache, block.layer, block.note
    assert list(block.parameters()) == []
    assert not hasattr(block, "note")
    with pytest.raises(AttributeError):
        del block.scale


@pytest.mark.parametrize(
    ("register", "value"),
    [
        ("register_parameter", lambda: nn.Parameter(fb.ones(1))),
        ("register_buffer", lambda: fb.ones(1)),
        ("add_module", nn.ReLU),
    ],
)
def test_names_must_be_new_non_empty_strings_without_dots(register, value):
    block = Block()
    for name, error in (("a.b", KeyError), ("", KeyError), ("note", KeyError), (3, TypeError)):
        with pytest.raises(error):
            getattr(block, register)(name, value())


def test_values_of_the_wrong_kind_are_refused():
    block = Block()
    with pytest.raises(TypeError, match="not a Module subclass"):
        block.add_module("x", fb.ones(1))
    with pytest.raises(TypeError, match=r"torch.nn.Parameter or None required"):
        block.register_parameter("x", fb.ones(1))
    with pytest.raises(TypeError, match="torch Tensor or None required"):
        block.register_buffer("x", 1.0)


def test_a_result_of_an_operation_is_no_parameter():
    result = (nn.Parameter(fb.ones(1)) * 2).as_subclass(nn.Parameter)
    with pytest.raises(ValueError, match="Cannot assign non-leaf Tensor to parameter 'x'"):
        Block().x = result


def test_assignment_before_init_is_explained():
    class Hasty(nn.Module):
        def __init__(self, value):
            self.part = value

    for value in (nn.Parameter(fb.ones(1)), nn.ReLU()):
        with pytest.raises(AttributeError, match=r"before Module.__init__\(\) call"):
            Hasty(value)


def test_a_call_before_init_is_an_attribute_error():
    class Bare(nn.Module):
        def __init__(self):
            pass

        def forward(self, x):
            return x

    with pytest.raises(AttributeError, match="'Bare' object has no attribute '_forward_hooks'"):
        Bare()(1)


def test_forward_gets_the_arguments_of_the_call():
    class Echo(nn.Module):
        def forward(self, *args, **kwargs):
            return args, kwargs

    for args, kwargs in (((), {}), ((1,), {}), ((1, 2), {}), ((1,), {"a": 2}), ((), {"a": 2})):
        assert Echo()(*args, **kwargs) == (args, kwargs)


def test_init_takes_no_arguments_unless_it_passes_them_on():
    with pytest.raises(TypeError, match="unexpected keyword argument 'size'"):
        nn.Module(size=3)
    with pytest.raises(TypeError, match="takes 1 positional argument but 2 were given"):
        nn.Module(3)

    class Named:
        def __init__(self, name):
            self.name = name

    class Both(nn.Module, Named):
        call_super_init = True

    assert Both("x").name == "x"


def test_unknown_attributes_name_the_class():
    with pytest.raises(AttributeError, match="'Block' object has no attribute 'wieght'"):
        _ = Block().wieght


def test_dir_lists_parts_and_leaves_out_numbers():
    assert {"scale", "mean", "layer", "forward"} <= set(dir(Block()))
    assert "0" not in dir(nn.Sequential(nn.ReLU()))


def test_shared_parts_come_once_unless_asked_for():
    model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    model[1].weight = model[0].weight
    assert len(list(model.parameters())) == 3
    names = [n for n, _ in model.named_parameters(remove_duplicate=False)]
    assert names == ["0.weight", "0.bias", "1.weight", "1.bias"]
    twice = nn.Sequential(model, model)
    assert len(list(twice.modules())) == 4
    assert len(list(twice.modules(remove_duplicate=False))) == 7
    assert len(list(twice.children())) == 1


def test_prefix_and_recurse():
    block = Block()
    assert [n for n, _ in block.named_parameters("p", recurse=False)] == ["p.scale"]
    assert [n for n, _ in block.named_modules(prefix="p")] == ["p", "p.layer"]
    memo = {block.layer}
    assert [n for n, _ in block.named_modules(memo)] == [""]


def test_parts_are_found_by_dotted_name():
    model = nn.Sequential(Block())
    assert model.get_submodule("") is model
    assert model.get_submodule("0.layer") is model[0].layer
    assert model.get_parameter("0.layer.bias") is model[0].layer.bias
    assert model.get_buffer("0.cache") is model[0].cache
    with pytest.raises(AttributeError, match="Block has no attribute `foo`"):
        model.get_submodule("0.foo")
    with pytest.raises(AttributeError, match=r"`note` is not an nn.Module"):
        model.get_submodule("0.note")
    with pytest.raises(AttributeError, match=r"`mean` is not an nn.Parameter"):
        model.get_parameter("0.mean")
    with pytest.raises(AttributeError, match="`scale` is not a buffer"):
        model.get_buffer("0.scale")


def test_set_submodule_replaces_and_with_strict_does_not_add():
    model = nn.Sequential(Block())
    model.set_submodule("0.layer", nn.Identity())
    assert isinstance(model[0].layer, nn.Identity)
    with pytest.raises(AttributeError):
        model.set_submodule("0.extra", nn.Identity(), strict=True)
    with pytest.raises(ValueError, match="without a target name"):
        model.set_submodule("", nn.Identity())


def test_apply_visits_children_before_parents_and_returns_the_module():
    seen = []
    model = nn.Sequential(nn.Sequential(nn.ReLU()), nn.Tanh())
    assert model.apply(lambda m: seen.append(type(m).__name__)) is model
    assert seen == ["ReLU", "Sequential", "Tanh", "Sequential"]


def test_train_and_eval_reach_all_descendants():
    model = nn.Sequential(nn.Dropout(), nn.Sequential(nn.Dropout()))
    assert model.eval() is model
    assert not any(m.training for m in model.modules())
    assert all(m.training for m in model.train().modules())
    with pytest.raises(ValueError, match="boolean"):
        model.train(1)


def test_zero_grad_drops_or_zeroes():
    layer = nn.Linear(2, 1)
    layer(fb.ones(1, 2)).sum().backward()
    layer.zero_grad(set_to_none=False)
    assert layer.weight.grad.tolist() == [[0.0, 0.0]]
    layer.zero_grad()
    assert layer.weight.grad is None


def test_requires_grad_freezes():
    block = Block().requires_grad_(False)
    assert not any(p.requires_grad for p in block.parameters())
    assert not block(fb.ones(1, 2)).requires_grad


def test_a_module_without_forward_says_so():
    with pytest.raises(
        NotImplementedError, match=r'Module .Module. is missing the required "forward"'
    ):
        nn.Module()(1)


def test_repr_shows_the_tree():
    class Described(nn.Module):
        def extra_repr(self):
            return "first\nsecond"

    assert repr(nn.Module()) == "Module()"
    assert repr(nn.Dropout(0.2)) == "Dropout(p=0.2, inplace=False)"
    model = nn.Sequential(Described(), nn.Sequential(nn.ReLU()))
    assert repr(model) == (
        "Sequential(\n"
        "  (0): Described(\n"
        "    first\n"
        "    second\n"
        "  )\n"
        "  (1): Sequential(\n"
        "    (0): ReLU()\n"
        "  )\n"
        ")"
    )


def test_deepcopy_is_independent_and_keeps_ties():
    model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    model[1].weight = model[0].weight
    other = copy.deepcopy(model)
    assert other[1].weight is other[0].weight
    assert other[0].weight is not model[0].weight
    with fb.no_grad():
        other[0].weight.zero_()
    assert model[0].weight.abs().sum() > 0


def test_pickle_keeps_state_mode_and_hooks():
    block = Block().eval()
    block.register_forward_hook(double_output)
    other = pickle.loads(pickle.dumps(block))
    assert not other.training and other.note == "plain"
    for key, value in block.state_dict().items():
        assert other.state_dict()[key].tolist() == value.tolist()
    x = fb.ones(1, 2)
    assert other(x).tolist() == block(x).tolist()


def double_output(module, args, output):
    return output * 2


def test_global_registration_hooks_see_and_replace_what_is_registered():
    seen = []

    def remember(module, name, value):
        seen.append(name)
        return nn.Parameter(fb.zeros(1)) if name == "a" else None

    with hooks.register_module_parameter_registration_hook(remember):
        module = nn.Module()
        module.a = nn.Parameter(fb.ones(1))
        module.register_parameter("b", nn.Parameter(fb.ones(1)))
    assert seen == ["a", "b"] and module.a.item() == 0.0 and module.b.item() == 1.0

    with hooks.register_module_buffer_registration_hook(lambda m, n, b: b + 1):
        module.register_buffer("c", fb.zeros(1))
    assert module.c.item() == 1.0

    with hooks.register_module_module_registration_hook(lambda m, n, child: nn.Tanh()):
        module.d = nn.ReLU()
        module.add_module("e", nn.ReLU())
    assert isinstance(module.d, nn.Tanh) and isinstance(module.e, nn.Tanh)
    module.f = nn.ReLU()
    assert isinstance(module.f, nn.ReLU)


def test_an_older_register_buffer_without_persistent_still_works():
    class Older(nn.Module):
        def register_buffer(self, name, tensor):
            super().register_buffer(name, tensor)

    module = Older()
    module.mean = nn.Buffer(fb.ones(1))
    module.mean = fb.zeros(1)
    assert module.state_dict()["mean"].item() == 0.0
    with pytest.raises(RuntimeError, match="without the persistent argument"):
        module.mean = nn.Buffer(fb.ones(1), persistent=False)
