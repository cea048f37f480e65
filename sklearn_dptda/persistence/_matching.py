"""Small bipartite matchings: who can serve whom, and which labelling is canonical."""

FREE = -1


def saturates(neighbours, capacities=None):
    """Whether every left vertex can be matched, each right vertex within its capacity.

    Parameters
    ----------
    neighbours : list of iterable of int
        Right neighbours of each left vertex.
    capacities : dict of int to int, optional
        How many left vertices a right vertex can take; 1 where missing.

    Returns
    -------
    bool
    """
    capacities = capacities or {}
    taken = {}

    def place(left, visited):
        for right in neighbours[left]:
            if right in visited:
                continue
            visited.add(right)
            guests = taken.setdefault(right, [])
            if len(guests) < capacities.get(right, 1):
                guests.append(left)
                return True
            for i, guest in enumerate(guests):
                if place(guest, visited):
                    guests[i] = left
                    return True
        return False

    return all(place(left, set()) for left in range(len(neighbours)))


def is_canonical(options, labels, capacities):
    """Whether ``labels`` is the lexicographically first valid labelling.

    A labelling gives each slot one of its options, a group or ``FREE``, and
    fills every group exactly to its capacity. Going through the slots, the
    given label must be the first option that can still be completed.

    Parameters
    ----------
    options : list of list of int
        Options of each slot in a fixed order.
    labels : list of int
        A valid labelling.
    capacities : list of int
        Size of each group.

    Returns
    -------
    bool
    """
    left = list(capacities)
    for slot, (choices, label) in enumerate(zip(options, labels, strict=True)):
        for choice in choices:
            if choice == label:
                break
            if choice == FREE or left[choice] > 0:
                if choice != FREE:
                    left[choice] -= 1
                possible = _completable(options[slot + 1 :], left)
                if choice != FREE:
                    left[choice] += 1
                if possible:
                    return False
        if label != FREE:
            left[label] -= 1
    return True


def _completable(options, left):
    """Whether the groups can be filled by the slots that remain.

    A matching that fills all groups and one that places all slots without the
    option ``FREE`` together give one that does both (Mendelsohn and Dulmage).
    """
    bound = [[c for c in choices if c != FREE] for choices in options if FREE not in choices]
    if not saturates(bound, dict(enumerate(left))):
        return False
    wanting = {}
    for slot, choices in enumerate(options):
        for choice in choices:
            if choice != FREE:
                wanting.setdefault(choice, []).append(slot)
    return saturates([wanting.get(g, []) for g, c in enumerate(left) for _ in range(c)])
