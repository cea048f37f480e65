"""The faults: for each file of the package, the tests that detect them, and texts to replace.

Each fault changes what a record costs: it adds too little noise, draws at too high a rate, declares
too small a sensitivity, leaves out a clip, spends a share twice, or makes a ledger forget.
"""

from typing import NamedTuple


class Fault(NamedTuple):
    """A text of one file of the package, and a wrong text in its place."""

    name: str
    path: str
    right: str
    wrong: str
    tests: tuple[str, ...]


_BORDER = "tests/test_border.py"
_OF_ROWS = (
    "tests/cluster/test_moments.py",
    "tests/test_tables_of_people.py",
    "tests/cluster/test_private_box.py",
    _BORDER,
    "tests/cluster",
)

# For each file: the tests, those that detect most of its faults first, and the faults.
_FAULTS: dict[str, tuple[tuple[str, ...], dict[str, tuple[str, str]]]] = {
    "rows/_moments.py": (
        _OF_ROWS,
        {
            "gaussian noise halved": (
                "return sensitivity.value / (self.total * math.sqrt(share))",
                "return 0.5 * sensitivity.value / (self.total * math.sqrt(share))",
            ),
            "gaussian share not a root": (
                "return sensitivity.value / (self.total * math.sqrt(share))",
                "return sensitivity.value / (self.total * share**0.25)",
            ),
            "laplace noise halved": (
                "return sensitivity.value / (self.total * share) * ROUND_UP",
                "return 0.5 * sensitivity.value / (self.total * share) * ROUND_UP",
            ),
            "laplace share a root": (
                "return sensitivity.value / (self.total * share) * ROUND_UP",
                "return sensitivity.value / (self.total * math.sqrt(share)) * ROUND_UP",
            ),
            "replaced row counted once in L1": (
                'factor = 1 if adjacency == "add-remove" else 2',
                'factor = 1 if adjacency == "add-remove" else 1',
            ),
            "replaced row at its least in L2": (
                "2 * total - 2 * min(least, 0.0)",
                "2 * total - 2 * max(least, 0.0)",
            ),
            "replaced row counted once in L2": (
                "return Sensitivity((2 * total - 2 * min(least, 0.0)) ** 0.5",
                "return Sensitivity((total - 2 * min(least, 0.0)) ** 0.5",
            ),
            "rest of gaussian budget free": (
                "total=self.total * math.sqrt(1 - spent)",
                "total=self.total * 1",
            ),
            "rest of laplace budget free": (
                "total=self.total * (1 - spent)",
                "total=self.total * 1",
            ),
            "choice of replaced rows at one direction": (
                'span = largest if self.adjacency == "add-remove" else 2 * largest',
                "span = largest",
            ),
            "gaussian choice at twice its rate": (
                "return 2 * self.total * math.sqrt(share)",
                "return 4 * self.total * math.sqrt(share)",
            ),
            "laplace choice at twice its rate": (
                "return self.total * share * ROUND_DOWN",
                "return 2 * self.total * share * ROUND_DOWN",
            ),
            "choice ignores what a cost moves by": (
                "rate = self.choice_epsilon(share) / span",
                "rate = self.choice_epsilon(share)",
            ),
            "change of a choice declared without mass": (
                "change=span * self.mass",
                "change=span",
            ),
            "counts of replaced rows counted once": (
                'moves = touched if self.adjacency == "add-remove" else 2 * touched',
                "moves = touched",
            ),
            "counts in one cell only": (
                "return self.scale(self.sensitivity_of_counts(touched), share)",
                "return self.scale(self.sensitivity_of_counts(1), share)",
            ),
            "person's mass left out of noise": (
                "sensitivity=sensitivity * self.mass",
                "sensitivity=sensitivity",
            ),
            "soft cells counted as two": ("touched = n_cells if soft else 2", "touched = 2"),
            "tied cells not squared": (
                'touched_high = touched**2 if kind == "tied" else touched',
                "touched_high = touched",
            ),
            "rounding to the lattice free": (
                "in_steps = lattice.sum_sensitivity(declared, moves).value",
                "in_steps = declared.value / lattice.step",
            ),
            "entries off the diagonal with too little noise": (
                "return (math.sqrt(0.5) if budget",
                "return (0.5 if budget",
            ),
            "outer products declared at half": (
                "sensitivity=math.ldexp(declared.value * budget.mass, 2 * bits)",
                "sensitivity=math.ldexp(declared.value * budget.mass, 2 * bits - 1)",
            ),
        },
    ),
    "rows/_assignments.py": (
        ("tests/cluster/test_moments.py", _BORDER, "tests/cluster"),
        {
            "residuals clipped in L2 for L1 noise": (
                "row_norms(unit, norm), 1.0))",
                'row_norms(unit, "l2"), 1.0))',
            ),
            "residuals not clipped": (
                "unit *= (INSIDE / np.maximum(row_norms(unit, norm), 1.0))[:, None]",
                "unit *= INSIDE",
            ),
            "residuals clipped to one and a half": (
                "unit *= (INSIDE / np.maximum(row_norms(unit, norm), 1.0))[:, None]",
                "unit *= (1.5 * INSIDE / np.maximum(row_norms(unit, norm), 1.5))[:, None]",
            ),
            "radius of the L1 ball not used": (
                'return radius * n_features**0.5 if norm == "l1" else radius',
                "return radius",
            ),
            "shares of a row may exceed one": (
                "shares = parts(batch) * INSIDE",
                "shares = parts(batch) * 1.25",
            ),
            "row in one cell counted twice": (
                "yield cells, 1.0, residuals(batch, cells)",
                "yield cells, 2.0, residuals(batch, cells)",
            ),
            "own radius of a cell ignored": (
                "reach = radius if np.ndim(radius) == 0 else radius[cells]",
                "reach = radius if np.ndim(radius) == 0 else radius.min()",
            ),
        },
    ),
    "rows/_rows.py": (
        ("tests/test_tables_of_people.py", "tests/test_people.py", _BORDER, "tests"),
        {
            "each row of a person at full weight": (
                "weights = (MASS // counts)[codes]",
                "weights = np.full(len(codes), MASS)",
            ),
            "rows of a person elsewhere forgotten": ("    if elsewhere:\n", "    if False:\n"),
            "weight of a person twice": (
                "weights = (MASS // counts)[codes]",
                "weights = (2 * MASS // counts)[codes]",
            ),
            "rows not clipped to the box": (
                "rows = np.clip(X, self.low, self.high)",
                "rows = np.array(X, dtype=float)",
            ),
            "rows not clipped to the cube": (
                "return np.clip(rows, self.least, 1.0, out=rows)",
                "return rows",
            ),
            "changed data not seen": (
                "(tally.n_rows, tally.checksum) != (self.n_counted, self.checksum or 0)",
                "tally.n_rows != self.n_counted",
            ),
        },
    ),
    "rows/_intervals.py": (
        (
            "tests/preprocessing",
            "tests/cluster/test_private_box.py",
            _BORDER,
            "tests/metric_privacy",
            "tests/cluster/test_dp_tomato.py",
        ),
        {
            "directions of a cube": (
                'directions = 1 if adjacency == "add-remove" else 2',
                "directions = 1",
            ),
            "number of rows free": (
                "epsilon *= 1 - CUBE.number_share",
                "epsilon *= 1",
            ),
            "nested cube free": ("left *= 1 - CUBE.nested_share", "left *= 1"),
            "columns do not share": ("each = epsilon / len(parts)", "each = epsilon"),
            "people in nested cubes at one direction": (
                "nested_directions = 1 if rows.n_people is None else directions",
                "nested_directions = 1",
            ),
            "weights of people left out of a nested cube": (
                "        sensitivity=directions * rows.mass,\n        rate=rate,\n"
                '        law="range",\n    )\n    return 2.0',
                "        sensitivity=directions,\n        rate=rate,\n"
                '        law="range",\n    )\n    return 2.0',
            ),
            "members drawn at twice the rate": (
                "choose_member(costs, [size for _, _, size in groups], rate, noise)",
                "choose_member(costs, [size for _, _, size in groups], 2 * rate, noise)",
            ),
            "nested cube drawn at twice the rate": (
                "lambda costs: choose_member(costs, [1] * len(costs), rate, noise)[0]",
                "lambda costs: choose_member(costs, [1] * len(costs), 2 * rate, noise)[0]",
            ),
            "exact extremes": (
                "    if math.isinf(epsilon):\n        return rows.sum(Extremes.of).bounds()",
                "    if epsilon > 0.5:\n        return rows.sum(Extremes.of).bounds()",
            ),
            "box: sizes free": (
                "(_BOX.sizes + n_looks * _BOX.look + _BOX.distances) * share",
                "(n_looks * _BOX.look + _BOX.distances) * share",
            ),
            "box: looks free": (
                "(_BOX.sizes + n_looks * _BOX.look + _BOX.distances) * share",
                "(_BOX.sizes + _BOX.distances) * share",
            ),
            "box: columns counted as one": (
                "counts, sd = budget.noisy_counts(rows.sum(_of_sizes), d, _BOX.sizes * share)",
                "counts, sd = budget.noisy_counts(rows.sum(_of_sizes), 1, _BOX.sizes * share)",
            ),
            "box: spent of a search within not taken off": (
                "budget = budget.rest(spent)",
                "budget = budget.rest(0.0)",
            ),
            "box: count of those outside free": (
                "return budget.rest(share), bool(counts[1] > enough)",
                "return budget, bool(counts[1] > enough)",
            ),
        },
    ),
    "rows/_localisation.py": (
        ("tests/cluster/test_localisation.py", _BORDER, "tests/discriminant_analysis"),
        {
            "columns counted as one": (
                "counts, sd = budget.noisy_counts(counts, d, for_columns)",
                "counts, sd = budget.noisy_counts(counts, 1, for_columns)",
            ),
            "rounds free": ("spent += for_columns + for_distances", "spent = for_columns"),
            "mean in a ball free": (
                "return mean, reach * moments.sd_sum / n, n, budget.rest(share)",
                "return mean, reach * moments.sd_sum / n, n, budget",
            ),
        },
    ),
    "rows/_estimator.py": (
        (_BORDER, "tests/test_tables_of_people.py", "tests/cluster", "tests/privacy"),
        {
            "whole budget for each row of a person": (
                "return kind(self._loss()[0] / mass, self.adjacency",
                "return kind(self._loss()[0], self.adjacency",
            ),
            "mass of people never passed on": (
                "cast(NoiseSource, noise), mass)",
                "cast(NoiseSource, noise), 1)",
            ),
            "private bounds free": (
                "            budget = budget.rest(spent)\n",
                "",
            ),
            "count of clipped rows free": (
                "            return budget.rest(share), []",
                "            return budget, []",
            ),
            "gaussian loss of a larger epsilon": (
                "mu = gaussian_mu(epsilon, delta)",
                "mu = gaussian_mu(1.2 * epsilon, delta)",
            ),
            "rho stated too small": (
                "return mu, gaussian_rho(mu)",
                "return mu, gaussian_rho(mu) / 2",
            ),
            "weight of a person ignores the rows that are allowed": (
                "return MASS if self.rows_per_group is None else int(self.rows_per_group)",
                "return MASS if self.rows_per_group is None else 1",
            ),
            "results of an earlier fit stay after a failure": (
                "            except BaseException:\n                self._forget()\n",
                "            except BaseException:\n",
            ),
        },
    ),
    "privacy/_calibration.py": (
        ("tests/privacy/test_calibration.py", "tests/privacy/test_choice_and_steps.py", _BORDER),
        {
            "bounded range to zCDP": (
                "return epsilon * epsilon / 8",
                "return epsilon * epsilon / 16",
            ),
            "pure to zCDP": ("return epsilon * epsilon / 2", "return epsilon * epsilon / 4"),
            "gaussian to zCDP": ("return mu * mu / 2", "return mu * mu / 4"),
            "gaussian curve: wrong sign": (
                "lower = epsilon + float(log_ndtr(-epsilon / mu - mu / 2))",
                "lower = epsilon + float(log_ndtr(-epsilon / mu - mu))",
            ),
            "gaussian target too large": (
                "    target = math.log(delta)\n    high = math.sqrt(2 * epsilon) + 40",
                "    target = math.log(2 * delta)\n    high = math.sqrt(2 * epsilon) + 40",
            ),
            "zCDP conversion without its last term": (
                "alpha * rho + math.log(excess / alpha) - (math.log(delta * alpha)) / excess",
                "alpha * rho + math.log(excess / alpha) - (math.log(2 * delta * alpha)) / excess",
            ),
            "choice and steps: half of the choice": (
                "reach, rest = 2 * mu * math.sqrt(share), mu * math.sqrt(1 - share)",
                "reach, rest = mu * math.sqrt(share), mu * math.sqrt(1 - share)",
            ),
            "several draws at the rate of one": (
                "pure = epsilon / n_releases",
                "pure = epsilon",
            ),
            "composition of ranges at half the loss": (
                "loss = k * t - i * rate",
                "loss = 0.8 * (k * t - i * rate)",
            ),
            "zCDP of several draws counts one": (
                "zcdp_epsilon(n_releases * bounded_range_rho(r), delta)",
                "zcdp_epsilon(bounded_range_rho(r), delta)",
            ),
            "bisection rounds up": (
                "if valid(middle) else (low, middle)\n    return low",
                "if valid(middle) else (low, middle)\n    return 2 * high",
            ),
        },
    ),
    "privacy/_choice.py": (
        ("tests/privacy/test_choice.py", "tests/preprocessing", _BORDER),
        {
            "member drawn at twice the rate": ("max(rate - _ROUNDING, 0.0)", "2 * rate"),
            "choice drawn at twice the rate": (
                "weights = np.maximum(np.exp(-rate * np.array(excesses)), _LEAST_WEIGHT)",
                "weights = np.maximum(np.exp(-2 * rate * np.array(excesses)), _LEAST_WEIGHT)",
            ),
            "impossible candidates": (
                "weights = np.maximum(np.exp(-rate * np.array(excesses)), _LEAST_WEIGHT)",
                "weights = np.exp(-rate * np.array(excesses)) * (np.array(excesses) * rate < 9)",
            ),
            "sizes of groups ignored": (
                "[w * m for w, m in zip(members, sizes, strict=True)]",
                "[w * (m > 0) for w, m in zip(members, sizes, strict=True)]",
            ),
            "scale of OpenDP's choice halved": (
                "math.isfinite(scale := ROUND_UP / rate)",
                "math.isfinite(scale := 0.5 * ROUND_UP / rate)",
            ),
            "laws exchanged": (
                "return (_exponential if bounded_range else _permute_and_flip)(weights, noise)",
                "return (_permute_and_flip if bounded_range else _exponential)(weights, noise)",
            ),
            "permuted in one order": ("    noise.shuffle(order)\n", ""),
        },
    ),
    "privacy/_noise.py": (
        (
            "tests/privacy/test_noise.py",
            "tests/privacy/test_keyed_draws.py",
            "tests/privacy/test_choice.py",
            "tests/graph",
        ),
        {
            "seeded laplace too narrow": (
                "success = -np.expm1(-1 / scale)",
                "success = -np.expm1(-1.3 / scale)",
            ),
            "seeded gaussian too narrow": (
                "cumulative = np.cumsum(np.exp(-0.5 * (support / scale) ** 2))",
                "cumulative = np.cumsum(np.exp(-0.8 * (support / scale) ** 2))",
            ),
            "keyed laplace too narrow": (
                "    def laplace(self, scale: float, size: int) -> NDArray[np.int64]:\n"
                '        """Integers with probabilities ~ exp(-|x| / scale)."""\n'
                "        exact = Fraction(scale)\n        return np.array([self._one_laplace",
                "    def laplace(self, scale: float, size: int) -> NDArray[np.int64]:\n"
                '        """Integers with probabilities ~ exp(-|x| / scale)."""\n'
                "        exact = Fraction(scale) / 2\n        return np.array([self._one_laplace",
            ),
            "keyed gaussian too narrow": ("square = scale * scale", "square = scale * scale / 2"),
            "zero twice as likely": (
                "            if size:\n                return -size",
                "            return -size",
            ),
            "OpenDP's laplace too narrow": (
                "return make_laplace(_integer_vectors(), l1_distance(T=i64), scale=scale)",
                "return make_laplace(_integer_vectors(), l1_distance(T=i64), scale=0.7 * scale)",
            ),
            "OpenDP's gaussian too narrow": (
                "return make_gaussian(_integer_vectors(), l2_distance(T=i64), scale=scale)",
                "return make_gaussian(_integer_vectors(), l2_distance(T=i64), scale=0.7 * scale)",
            ),
            "noisy count at half the noise": (
                "        scale = ROUND_UP / epsilon\n",
                "        scale = 0.5 * ROUND_UP / epsilon\n",
            ),
            "flips of other categories": (
                "numerator = math.ceil(_N_WORDS * others / (growth + others))",
                "numerator = math.ceil(_N_WORDS * others / (2 * growth + others))",
            ),
            "seeds repeat": (
                "spawn(1)[0]",
                "spawn(1)[0].__class__(0)",
            ),
        },
    ),
    "privacy/_lattice_noise.py": (
        (
            "tests/metric_privacy/test_noise_and_measures.py",
            "tests/metric_privacy",
            "tests/persistence",
        ),
        {
            "law of radii": ("for _ in range(d + 1)", "for _ in range(d)"),
            "laplace at half the scale": (
                "return noise.discrete_laplace(ROUND_UP / rate, shape)",
                "return noise.discrete_laplace(0.5 * ROUND_UP / rate, shape)",
            ),
            "radii drawn at a higher rate": (
                "k = noise.discrete_laplace(ROUND_UP / rate, int(2.2 * missing) + 16)",
                "k = noise.discrete_laplace(0.8 * ROUND_UP / rate, int(2.2 * missing) + 16)",
            ),
            "corners of a ball": (
                "<= radii.astype(float) ** 2]",
                "<= 2 * radii.astype(float) ** 2]",
            ),
            "cubes not full": (
                "np.repeat(2 * radii + 1, d)",
                "np.repeat(2 * radii + (radii == 0), d)",
            ),
        },
    ),
    "privacy/_rare_coins.py": (
        ("tests/privacy/test_rare.py", "tests/graph"),
        {
            "rare coins too rare": ("(1 - 2.0**-31), _LARGEST_SCALE)", "1.4, _LARGEST_SCALE)"),
            "coins drawn with wrong odds": (
                "misses = (1 << 64) - numerator",
                "misses = (1 << 64) - numerator // 2",
            ),
            "gaps too long": (
                "steps = at + np.cumsum(gaps[gaps >= 0] + 1)",
                "steps = at + np.cumsum(gaps[gaps >= 0] + 2)",
            ),
        },
    ),
    "privacy/_release_key.py": (
        ("tests/privacy/test_keyed_draws.py", "tests/privacy", "tests/model_selection"),
        {
            "stream repeats": ("self._counter.to_bytes(8,", "(1).to_bytes(8,"),
            "children equal": (
                "pickle.Pickler(_Sink(digest), protocol=5).dump(label)",
                "pass",
            ),
            "releases of a task share a key": (
                "turn = Turn.of(self.key.child(self.count))",
                "turn = Turn.of(self.key.child(1))",
            ),
            "digest not kept": (
                "coins=self.bound.child(self.count), digest=self.bound.name()",
                "coins=self.bound.child(self.count)",
            ),
            "noise does not depend on records": (
                "coins=self.bound.child(self.count), digest=self.bound.name()",
                "digest=self.bound.name()",
            ),
            "name reveals the key": (
                'return self.child("name")._secret.hex()[:32]',
                "return self._secret.hex()[:32]",
            ),
            "key file that others read": (
                'if os.name == "posix" and status.st_mode & 0o077:',
                "if False:",
            ),
        },
    ),
    "privacy/_guarantee.py": (
        (
            "tests/privacy/test_accountant.py",
            "tests/privacy/test_composition.py",
            "tests/privacy",
        ),
        {
            "epsilon may exceed the budget": (
                "epsilon <= self.epsilon * _BUDGET_TOLERANCE and",
                "epsilon <= 1.1 * self.epsilon and",
            ),
            "delta not counted": (
                "and delta <= self.delta * _BUDGET_TOLERANCE",
                "and delta <= 1",
            ),
            "rho may exceed the budget": (
                "return _rounded(sums.concentrated) <= budget * _BUDGET_TOLERANCE",
                "return _rounded(sums.concentrated) <= budget * 1.1",
            ),
            "pure loss not concentrated": (
                "return pure_rho(self.epsilon) if self.delta == 0 else math.inf",
                "return pure_rho(self.epsilon) if self.delta < 1 else math.inf",
            ),
            "losses without rho counted": (
                "charge.rho is None and charge.delta > 0:",
                "False:",
            ),
            "equal charges counted once": (
                "counts[charge] += count",
                "counts[charge] = count",
            ),
            "sum of two guarantees forgets delta": (
                "delta=self.delta + other.delta",
                "delta=max(self.delta, other.delta)",
            ),
            "sum of two guarantees is the larger": (
                "epsilon=self.epsilon + other.epsilon",
                "epsilon=max(self.epsilon, other.epsilon)",
            ),
            "sum of two rhos is the larger": (
                "rho=self.charge.concentrated + other.charge.concentrated",
                "rho=max(self.charge.concentrated, other.charge.concentrated)",
            ),
            "guarantees of unlike neighbours added": (
                "if (self.adjacency, self.unit) != (other.adjacency, other.unit):",
                "if self.unit != other.unit:",
            ),
        },
    ),
    "privacy/_ledger.py": (
        (
            "tests/privacy/test_ledger.py",
            "tests/privacy/test_accountant.py",
            "tests/privacy/test_units_of_ledgers.py",
            "tests/privacy",
        ),
        {
            "budget never refused": (
                "if not rule.fits(state.sums.plus(sums)):",
                "if not rule.fits(sums):",
            ),
            "earlier payments forgotten": (
                "after = state._asdict(), state.after(sums, len(due), due[0].neighbours)._asdict()",
                "after = state._asdict(), "
                "state.after(sums, len(due), due[0].neighbours)._asdict() | {'epsilon_spent': '0'}",
            ),
            "something else under a paid key": (
                "if rows and dict(zip(_CONTENT, rows[0], strict=True)) != payment.columns():",
                "if False:",
            ),
            "paid again under a key": ("    return bool(rows)\n", "    return False\n"),
            "everything is paid already": ("    return bool(rows)\n", "    return True\n"),
            "unlike adjacencies added": ("    if len(kinds) > 1:", "    if len(kinds) > 9:"),
            "unlike units added": (
                "if kind_of_unit(other) == kind_of_unit(counted):",
                "if True:",
            ),
            "losses that cannot be counted": ("        rule.check(charge)\n", "        pass\n"),
        },
    ),
    "privacy/_estimator.py": (
        (
            "tests/privacy/test_payments.py",
            "tests/privacy/test_said.py",
            "tests/test_privacy_checks.py",
            "tests/privacy",
            "tests/model_selection",
        ),
        {
            "nothing is paid": ("            rho=guarantee.rho,\n", "            rho=0.0,\n"),
            "warnings of arithmetic": (
                "with silent_arithmetic(), without_sizes():",
                "with without_sizes():",
            ),
            "default accountant ignored": (
                "return self.accountant if self.accountant is not None else default_accountant()",
                "return self.accountant",
            ),
            "units of the ledger lost": ("unit=guarantee.unit", "unit='one record'"),
            "tiny epsilon accepted": (
                "if not (least <= self.epsilon <= most or math.isinf(self.epsilon)):",
                "if False:",
            ),
        },
    ),
    "filtration/_dtm.py": (
        ("tests/filtration/test_sensitivity.py", "tests/filtration", _BORDER),
        {
            "half of the sensitivity": (
                "return diameter / neighbour_count",
                "return 0.5 * diameter / neighbour_count",
            ),
            "power of the mean ignored": (
                "return diameter / neighbour_count(m, n) ** (1 / p)",
                "return diameter / neighbour_count(m, n)",
            ),
            "cap not used": ("            return width / 2\n", "            return width / 4\n"),
            "smaller caps too small": (
                "_CAPS = tuple(2.0 ** (-j / 2) for j in range(1, 7))",
                "_CAPS = tuple(2.0**-j for j in range(1, 7))",
            ),
            "people's rounding free": (
                "sensitivity_dtm(self.m, n, self.p, cap) + power.rounding,\n"
                "                min(cap",
                "sensitivity_dtm(self.m, n, self.p, 0.9 * cap),\n                min(cap",
            ),
        },
    ),
    "filtration/_kernel.py": (
        ("tests/filtration/test_sensitivity.py", "tests/filtration", _BORDER),
        {
            "kernel moves by one": ("    step = math.sqrt(2)\n", "    step = 1.0\n"),
            "step within a box halved": (
                "step = math.sqrt(-2 * math.expm1(-((diameter / bandwidth) ** 2) / 2))",
                "step = math.sqrt(-math.expm1(-((diameter / bandwidth) ** 2) / 2))",
            ),
            "squared distance": (
                "return step * step * (2 - 1 / n) / n",
                "return step * step * (1 - 1 / n) / n",
            ),
            "least value not kept": (
                "return np.sqrt(np.maximum(squared, self._plain_sensitivity(n) ** 2))",
                "return np.sqrt(np.maximum(squared, 0.0))",
            ),
            "error of squares free": (
                "sensitivity=sensitivity + self._squared_error(n) / sensitivity",
                "sensitivity=sensitivity * 0.99",
            ),
        },
    ),
    "filtration/_nearest_sums.py": (
        ("tests/filtration", _BORDER),
        {
            "distances not capped": (
                "if power.max(initial=0.0) > self.cap:",
                "if False:",
            ),
            "sums not capped by smaller caps": (
                "math.floor(math.ldexp(share**p, self.bits))",
                "math.floor(math.ldexp(1.0, self.bits))",
            ),
            "values of fewer neighbours": (
                "mean = total / (self.k * 2.0**self.bits)",
                "mean = total / (max(self.k - 1, 1) * 2.0**self.bits)",
            ),
        },
    ),
    "filtration/_people.py": (
        ("tests/filtration/test_clouds_of_people.py", "tests/test_people.py", _BORDER),
        {
            "weights rounded each by itself": (
                "return (upto << WEIGHT_BITS) // n - ((upto - counts) << WEIGHT_BITS) // n",
                "return -(-(counts << WEIGHT_BITS) // n)",
            ),
            "each point of a person at full weight": (
                "_weights(codes[order], np.ones(len(codes), dtype=np.int64), totals)",
                "1 << WEIGHT_BITS",
            ),
        },
    ),
    "filtration/_place_histogram.py": (
        ("tests/filtration/test_landmarks.py", "tests/filtration", _BORDER),
        {
            "one neighbour too many": (
                "np.clip(power.k - nearer, 0, counts) @ capped",
                "np.clip(power.k + 1 - nearer, 0, counts) @ capped",
            ),
            "counts not limited to neighbours": (
                "np.clip(power.k - nearer, 0, counts) @ capped",
                "np.where(nearer < power.k, counts, 0) @ capped",
            ),
        },
    ),
    "persistence/_mechanisms.py": (
        ("tests/persistence/test_private.py", _BORDER, "tests/persistence"),
        {
            "diagrams at twice the rate": (
                "Fraction(self.rate) / (2 * grid.sensitivity)",
                "Fraction(self.rate) / (1 * grid.sensitivity)",
            ),
            "grid of half the sensitivity": (
                "padded = sensitivity * STEP_PADDING",
                "padded = sensitivity * 0.5",
            ),
            "clipped count free": (
                "epsilon = float(private.epsilon) * (1 - CLIPPED_SHARE * private.clipped_share)",
                "epsilon = float(private.epsilon)",
            ),
            "chain at twice the rate": (
                "slope = cache(source.generator), self.rate / (2 * sensitivity)",
                "slope = cache(source.generator), self.rate / sensitivity",
            ),
            "table too short": (
                "per_step.denominator, grid.size + 1)",
                "per_step.denominator, grid.size // 2)",
            ),
        },
    ),
    "persistence/_exact_sampler.py": (
        ("tests/persistence/test_exact_sampler.py", "tests/persistence"),
        {
            "weights rounded down": (
                "mantissas.append(-(-product >> shift))",
                "mantissas.append(product >> shift)",
            ),
            "factor rounded down": (
                "factor = up.next_plus(up.exp(rate.copy_negate()))",
                "factor = up.exp(rate.copy_negate()).next_minus()",
            ),
            "levels at twice the rate": (
                "rate = down.divide(Decimal(numerator), Decimal(denominator))",
                "rate = 2 * down.divide(Decimal(numerator), Decimal(denominator))",
            ),
            "levels accepted always": (
                "if source.below(block.volume(block.high)) >= block.volume(r):",
                "if False:",
            ),
            "rate rounded to the digits of the caller": (
                "up.exp(rate.copy_negate())",
                "up.exp(-rate)",
            ),
            "radius one too large": (
                "if abs(b - zb) <= r and abs(d - zd) <= r]",
                "if abs(b - zb) <= r + 1 and abs(d - zd) <= r]",
            ),
            "diagonal one too near": (
                "far = [p for p in points if p[1] - p[0] > 2 * r]",
                "far = [p for p in points if p[1] - p[0] > 2 * r + 2]",
            ),
        },
    ),
    "persistence/_private_betti_numbers.py": (
        ("tests/persistence/test_betti_numbers.py", _BORDER),
        {
            "counts at twice the rate": (
                "float(self.epsilon) / (2 * lattice.sensitivity)",
                "float(self.epsilon) / lattice.sensitivity",
            ),
            "counts drawn at twice the rate": (
                "index = private_choice(costs, rate, source",
                "index = private_choice(costs, 2 * rate, source",
            ),
        },
    ),
    "persistence/_persistence_profile.py": (
        ("tests/persistence/test_profile.py", _BORDER),
        {
            "profile at a higher rate": (
                "rate = epsilon / lattice.sensitivity",
                "rate = 1.3 * epsilon / lattice.sensitivity",
            ),
            "noise at twice the rate": (
                "return steps + lattice_noise(source, rate, (1, steps.size)",
                "return steps + lattice_noise(source, 2 * rate, (1, steps.size)",
            ),
            "whole epsilon after a choice": (
                "epsilon = float(self.epsilon) if choice is None else choice.rest",
                "epsilon = float(self.epsilon)",
            ),
        },
    ),
    "persistence/_lifetimes.py": (
        ("tests/persistence/test_profile.py", "tests/persistence/test_betti_numbers.py", _BORDER),
        {
            "lifetimes move by one sensitivity": (
                "2 * math.ceil(math.ldexp(sensitivity, -exponent))",
                "math.ceil(math.ldexp(sensitivity, -exponent))",
            ),
        },
    ),
    "persistence/_private_cap.py": (
        ("tests/persistence/test_private_cap.py", _BORDER),
        {
            "rest after a cap free": (
                "(1 - _CHOICE_SHARE) * epsilon / ROUND_UP",
                "epsilon / ROUND_UP",
            ),
            "cap at twice the rate": (
                "return self.choice / (2 * _UNIT)",
                "return self.choice / _UNIT",
            ),
            "gates in units of one cap": (
                "both = (wider + sensitivity) * STEP_PADDING + rounding",
                "both = sensitivity * STEP_PADDING + rounding",
            ),
            "what is above a cap not in units of the wider": (
                "larger.beyond(upper) / (wider * STEP_PADDING + rounding)",
                "larger.beyond(upper) / (sensitivity * STEP_PADDING + rounding)",
            ),
        },
    ),
    "persistence/_found_threshold.py": (
        (
            "tests/persistence/test_found_threshold.py",
            "tests/persistence/test_betti_numbers.py",
            _BORDER,
        ),
        {
            "threshold at twice the rate": (
                "private_choice(costs, choice.rate,",
                "private_choice(costs, 2 * choice.rate,",
            ),
            "rate of a threshold": (
                "precision), epsilon / (2 * UNIT))",
                "precision), epsilon / UNIT)",
            ),
        },
    ),
    "persistence/_cubical.py": (
        (_BORDER, "tests/persistence/test_cubical.py", "tests/filtration/test_landmarks.py"),
        {
            "complex of landmarks without its last dimension": (
                "persistence_dim_max=True",
                "persistence_dim_max=False",
            ),
        },
    ),
    "persistence/_private_persistence.py": (
        ("tests/persistence/test_private.py", "tests/persistence/test_clipped_share.py", _BORDER),
        {
            "rho of one draw only": (
                "rho = n_draws * bounded_range_rho(rate)",
                "rho = bounded_range_rho(rate)",
            ),
            "clipped share free of rho": (
                "rho += pure_rho(CLIPPED_SHARE * epsilon)",
                "rho += 0.0",
            ),
            "delta denied": (
                "delta=0.0 if rate * n_draws <= for_diagrams else float(self.delta)",
                "delta=0.0",
            ),
            "clipped counts at the whole epsilon": (
                "epsilon = CLIPPED_SHARE * float(self.epsilon)",
                "epsilon = float(self.epsilon)",
            ),
        },
    ),
    "graph/_flip.py": (
        ("tests/graph/test_flip.py", "tests/graph", _BORDER),
        {
            "flips of a larger epsilon": (
                "return flip_numerator(float(self.epsilon), 2)",
                "return flip_numerator(1.3 * float(self.epsilon), 2)",
            ),
            "laplace flips of twice epsilon": (
                "2.0**63 * math.exp(-epsilon / 2)",
                "2.0**63 * math.exp(-epsilon)",
            ),
            "flips free of charge": (
                "rate=math.log((2**64 - numerator) / numerator) if numerator else math.inf",
                "rate=0.5 * math.log((2**64 - numerator) / numerator) if numerator else math.inf",
            ),
        },
    ),
    "graph/_flipped_pairs.py": (
        ("tests/graph/test_flip.py", "tests/graph"),
        {
            "last pairs never flipped": (
                "return int(self._starts[self.n_rows])",
                "return int(self._starts[self.n_rows - 2])",
            ),
        },
    ),
    "population/_two_sample_test.py": (
        ("tests/population/test_two_sample_test.py", _BORDER),
        {
            "one statistic moves": ("ROUND_UP * 2 * (2 * larger", "ROUND_UP * (2 * larger"),
            "people weigh by their rows": (
                "mean = clip_norm(total / rows[:, None], 1.0)",
                "mean = total / rows[:, None].min()",
            ),
            "smaller group sets the scale": (
                "rejected = _decide(statistics, max(sizes)",
                "rejected = _decide(statistics, min(sizes)",
            ),
        },
    ),
    "population/_private_mean.py": (
        ("tests/population/test_private_mean.py", _BORDER),
        {
            "weights of a mean in L1": (
                'power = 2 if norm == "l1" else 1',
                "power = 1",
            ),
            "rows not shortened to the bound": (
                "radius = np.clip(self.norm_bound / box.unit[0], *_RADII)",
                "radius = np.clip(4 * self.norm_bound / box.unit[0], *_RADII)",
            ),
        },
    ),
    "metric_privacy/_box_measure.py": (
        ("tests/metric_privacy/test_noise_and_measures.py", _BORDER, "tests/metric_privacy"),
        {
            "number of rows free": (
                "scale, epsilon * (1 - _SIZE_SHARE)",
                "scale, epsilon",
            ),
            "replaced rows move once": (
                "max(rows.n_rows, 1), 2.0), 0.0",
                "max(rows.n_rows, 1), 1.0), 0.0",
            ),
            "columns by themselves free": (
                "epsilon *= 1 - marginal_share",
                "epsilon *= 1",
            ),
            "levels do not share": (
                "return [sensitivity / (share * epsilon) * ROUND_UP for share in shares]",
                "return [sensitivity / epsilon * ROUND_UP for share in shares]",
            ),
            "mass of people left out": (
                "sensitivity=times * self.moved * self.rows.mass",
                "sensitivity=times * self.moved",
            ),
            "columns at the whole share": (
                "noisy.line(a, epsilon * marginal_share / d)",
                "noisy.line(a, epsilon * marginal_share)",
            ),
        },
    ),
    "metric_privacy/_class_measure.py": (
        ("tests/metric_privacy/test_targets.py", _BORDER),
        {
            "columns beside a target free": (
                "epsilon *= 1 - marginal_share",
                "epsilon *= 1",
            ),
            "tables of one column": (
                "scale = len(cuts) * noisy.moved / epsilon * ROUND_UP",
                "scale = noisy.moved / epsilon * ROUND_UP",
            ),
        },
    ),
    "metric_privacy/_private_measure.py": (
        ("tests/metric_privacy/test_tables_of_people.py", "tests/metric_privacy", _BORDER),
        {
            "people at the whole epsilon": (
                "epsilon = guarantee.epsilon / rows.mass",
                "epsilon = guarantee.epsilon",
            ),
            "bounds free": (
                "epsilon *= 1 - self.bounds_share",
                "epsilon *= 1",
            ),
            "metric alpha stated too small": (
                "alpha = epsilon * n if self.alpha is None else float(self.alpha)",
                "alpha = 2 * epsilon * n if self.alpha is None else float(self.alpha)",
            ),
        },
    ),
    "metric_privacy/_exponential.py": (
        ("tests/metric_privacy/test_mechanisms.py", "tests/metric_privacy", _BORDER),
        {
            "exponential mechanism at the full rate": (
                "rate, log_weights = float(self.alpha) / 2,",
                "rate, log_weights = float(self.alpha),",
            ),
        },
    ),
    "metric_privacy/_finite_laws.py": (
        ("tests/metric_privacy/test_mechanisms.py", "tests/metric_privacy", "tests/theory"),
        {
            "loss of a law halved": (
                "largest = max(largest, float((loss[apart] / distances[apart]).max(initial=0.0)))",
                "largest = max("
                "largest, float((0.5 * loss[apart] / distances[apart]).max(initial=0.0)))",
            ),
            "points at one place may differ": (
                "if (loss[~apart] > 0).any():",
                "if False:",
            ),
            "rate never lowered": ("        if parameter <= alpha:\n", "        if True:\n"),
        },
    ),
    "metric_privacy/_k_norm.py": (
        ("tests/metric_privacy/test_mechanisms.py", "tests/metric_privacy", _BORDER),
        {
            "noise at a higher rate": (
                "rate = float(self.alpha) * self.resolution_",
                "rate = 1.3 * float(self.alpha) * self.resolution_",
            ),
            "points not clipped": (
                "        if self._box is not None:\n            X = np.clip(X, *self._box)\n"
                "        try:",
                "        try:",
            ),
        },
    ),
    "cluster/_noisy_steps.py": (
        (_BORDER, "tests/cluster"),
        {
            "every step at the whole share": (
                "share=share / n_steps,",
                "share=share,",
            ),
            "localisation free": ("    budget = budget.rest(spent)\n", ""),
            "mixture steps at the whole share": (
                "made = step(share / 2 / (n_steps - 1))",
                "made = step(share / 2)",
            ),
            "first steps free": (
                "data, centres, n_steps - RULES.start_steps, share=share - first",
                "data, centres, n_steps - RULES.start_steps, share=share",
            ),
        },
    ),
    "cluster/_dp_tree.py": (
        (_BORDER, "tests/cluster/test_dp_kmeans.py"),
        {"tree free": ("(1 - _TREE_SHARE) * share)", "share)")},
    ),
    "cluster/_box_tree.py": (
        (_BORDER, "tests/cluster/test_dp_kmeans.py"),
        {"levels at the whole share": ("share=share / depth,", "share=share,")},
    ),
    "cluster/_dp_cube.py": (
        (_BORDER, "tests/cluster/test_dp_kmeans.py"),
        {
            "swaps at the whole share": (
                "each = share / (n_swaps + 1)",
                "each = share",
            ),
            "swaps declared too small": (
                "index = budget.choose(costs.ravel().tolist(), LARGEST_COST, each)",
                "index = budget.choose(costs.ravel().tolist(), LARGEST_COST / 4, each)",
            ),
        },
    ),
    "cluster/_dp_mog.py": (
        (_BORDER, "tests/cluster/test_dp_mog.py"),
        {
            "k-means start free": (
                "share, left = RULES.kmeans_share, 1 - RULES.kmeans_share",
                "share, left = RULES.kmeans_share, 1",
            ),
        },
    ),
    "cluster/_dp_tomato.py": (
        (_BORDER, "tests/cluster/test_dp_tomato.py"),
        {
            "count of rows free": (
                "(1 - _ROW_COUNT_SHARE) * share / len(low)",
                "share / len(low)",
            ),
            "intervals of all columns at the whole share": (
                "(1 - _ROW_COUNT_SHARE) * share / len(low)",
                "(1 - _ROW_COUNT_SHARE) * share",
            ),
            "replaced rows move once": (
                '1.0 if self.adjacency == "add-remove" else 2.0, "l1"',
                '1.0, "l1"',
            ),
        },
    ),
    "cluster/_dp_landmark_tomato.py": (
        (_BORDER, "tests/cluster/test_dp_landmark_tomato.py"),
        {
            "mixture free": (
                "counts, sd = budget.noisy_counts(exact, 1, 1 - _MIXTURE_SHARE)",
                "counts, sd = budget.noisy_counts(exact, 1, 1.0)",
            ),
        },
    ),
    "discriminant_analysis/_noisy_discriminants.py": (
        (_BORDER, "tests/discriminant_analysis"),
        {
            "part of the cube free": (
                "return (low + high) / 2, (high - low) / 2, budget.rest(share)",
                "return (low + high) / 2, (high - low) / 2, budget",
            ),
            "cost of the part moves by less": (
                "low, high = parts[budget.choose(costs, 1, share * _OF_CHOICE)]",
                "low, high = parts[budget.choose(costs, 0.5, share * _OF_CHOICE)]",
            ),
            "labels leave the cube": (
                "inside = np.clip((part[:, :d] - middle) / half, -1.0, 1.0)",
                "inside = (part[:, :d] - middle) / half",
            ),
        },
    ),
}

FAULTS = [
    Fault(f"{path}: {name}", path, right, wrong, tests)
    for path, (tests, faults) in _FAULTS.items()
    for name, (right, wrong) in faults.items()
]
