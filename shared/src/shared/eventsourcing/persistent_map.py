"""An immutable mapping whose changed copies share what did not change."""

from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

K = TypeVar("K")
V = TypeVar("V")

BITS = 5
CHILDREN = 1 << BITS
LEAF_KEYS_MAX = 32
BITS_MAX = 60
"""Of a hash; keys that share all of them share a leaf, however large it gets."""

Node = Any
"""A leaf is a dict, a branch is a tuple of CHILDREN nodes, by the next bits of the keys' hashes."""


class PersistentMap(Mapping[K, V]):
    """For a mapping in the state of an aggregate that can have thousands of keys.

    `evolve` returns a new state for each event. A dict would be copied as a whole each time, so a
    fold would grow with the square of the keys; here a change copies one leaf and the branches
    above it.
    """

    __slots__ = ("_count", "_root")

    def __init__(self, root: Node = None, count: int = 0) -> None:
        self._root: Node = {} if root is None else root
        self._count = count

    def added(self, key: K, value: V) -> "PersistentMap[K, V]":
        """With this value under the key, in place of any other."""
        count = self._count + (key not in self)
        return PersistentMap(add(self._root, key, value, 0), count)

    def removed(self, key: K) -> "PersistentMap[K, V]":
        """Without the key; the same mapping if it has no such key."""
        if key not in self:
            return self
        return PersistentMap(remove(self._root, key, 0), self._count - 1)

    def __getitem__(self, key: K) -> V:
        node, shift = self._root, 0
        while isinstance(node, tuple):
            node, shift = node[child_of(key, shift)], shift + BITS
        value: V = node[key]
        return value

    def __iter__(self) -> Iterator[K]:
        nodes = [self._root]
        while nodes:
            node = nodes.pop()
            if isinstance(node, tuple):
                nodes += node
            else:
                yield from node

    def __len__(self) -> int:
        return self._count

    def __repr__(self) -> str:
        return f"PersistentMap({dict(self)})"


def child_of(key: object, shift: int) -> int:
    return hash(key) >> shift & CHILDREN - 1


def add(node: Node, key: object, value: object, shift: int) -> Node:
    if isinstance(node, tuple):
        child = child_of(key, shift)
        changed = add(node[child], key, value, shift + BITS)
        return (*node[:child], changed, *node[child + 1 :])
    leaf = {**node, key: value}
    return leaf if len(leaf) <= LEAF_KEYS_MAX or shift >= BITS_MAX else split(leaf, shift)


def split(leaf: Mapping[Any, Any], shift: int) -> Node:
    branch: Node = tuple({} for _ in range(CHILDREN))
    for key, value in leaf.items():
        branch[child_of(key, shift)][key] = value
    return branch


def remove(node: Node, key: object, shift: int) -> Node:
    if isinstance(node, tuple):
        child = child_of(key, shift)
        changed = remove(node[child], key, shift + BITS)
        return (*node[:child], changed, *node[child + 1 :])
    leaf = {**node}
    del leaf[key]
    return leaf
