"""A release as a draft for the public registry of deployments of differential privacy.

The fields are those of tier 3 of the registry (registry.opendp.org), whose schema is in the
repository opendp/deployments-registry-data. A field that only the curator can fill contains a
question.
"""

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from sklearn.base import BaseEstimator, is_classifier
from sklearn.pipeline import Pipeline

from sklearn_dptda.plotting._release_words import (
    meaning_of_epsilon,
    neighbours,
    public_parameters_of,
    versions,
    whom_it_protects,
)
from sklearn_dptda.privacy import PrivacyAccountant, PrivacyGuarantee

_QUESTION = "QUESTION: "
_HEAD = """\
# Draft for the registry of deployments of differential privacy, registry.opendp.org.
# It contains private output and public parameters only. Answer these questions, in the fields
# below or as fields of their own, before you submit it:
"""
# What only the curator knows. The last two fields allow only some words, so they are left out.
_QUESTIONS = {
    "basic.data_curators": "Who publishes the data product?",
    "basic.intended_use": "What is the data product for?",
    "basic.data_product_region": "Which region do the data describe?",
    "basic.description": "What are the data about?",
    "deployment_model.actors": "Who can read the records, and who receives the release?",
    "deployment_model.release_type_details": "Are there other releases of the same data that no "
    "ledger or another one counts, and what is their total loss?",
    "deployment_model.data_source_type_details": "Do new records come in over time?",
    "accounting.post_processing": "What else was computed from the release before it was "
    "published?",
    "implementation.preprocessing_and_hyperparameter_tuning": "Was anything looked at or tried on "
    "the records before, and how was it accounted for?",
    "implementation.mechanisms": "Who can access the records? Which measures secure them?",
    "implementation.justification": "Why were this epsilon and this unit chosen?",
    "administrative.sources": "Where are the release, and papers about it?",
    "administrative.registry_authors": "Who wrote this record?",
    "basic.data_product_sector": "Technology, Healthcare, Education, ...?",
    "deployment_model.data_source_type": "Static or Dynamic?",
}
_SAFETY = (
    "Noise and random choices are drawn exactly, in integers, from the operating system's entropy. "
    "Errors and warnings quote no records. Running times are not protected."
)


def registry_record(
    estimator: BaseEstimator,
    guarantee: PrivacyGuarantee,
    accountant: PrivacyAccountant | None,
    statements: Sequence[str],
    parameters: Mapping[str, Any],
    title: str,
) -> str:
    """Return the YAML of a draft, with its questions listed at the top."""
    if not guarantee.holds or math.isinf(guarantee.epsilon):
        raise ValueError(
            "This release must not be registered as private, because its guarantee does not hold: "
            f"{guarantee}"
        )
    last = estimator[-1] if isinstance(estimator, Pipeline) else estimator
    steps = [type(step).__name__ for _, step in getattr(estimator, "steps", [])[:-1]]
    used = public_parameters_of(estimator, parameters)
    listed = "; ".join(f"{name}={value}" for name, value in used.items()) or "all defaults"
    n_payments = 0 if accountant is None else len(accountant)
    record = {
        "url_slug": re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-") or "draft",
        "status": "Draft",
        "tier": 3,
        "deployment": {
            "basic": {
                "name": title,
                "data_curators": [_asked("basic.data_curators")],
                "intended_use": _asked("basic.intended_use"),
                "data_product_type": _kind_of_product(last),
                "data_product_region": _asked("basic.data_product_region"),
                "description": " ".join(
                    [
                        f"{guarantee.released[:1].upper()}{guarantee.released[1:]}, released by "
                        f"{type(last).__name__}.",
                        *statements,
                        _asked("basic.description"),
                    ]
                ),
                "publication_date": datetime.now(UTC).date().isoformat(),
            },
            "dp_variant": {
                "variant_name": "Approximate DP" if guarantee.delta > 0 else "Pure DP",
                "data_domain": _domain(guarantee, listed),
                "unprotected_quantities": _unprotected(guarantee),
            },
            "privacy_loss": {
                "privacy_unit": guarantee.unit,
                "privacy_unit_details": f"{guarantee.adjacency}. {neighbours(guarantee)}",
                "privacy_parameters": _numbers(guarantee),
                "privacy_parameters_details": _details(last, guarantee),
            },
            "deployment_model": {
                "model_name": "Central",
                "model_name_details": "One party, which runs the library, reads the records.",
                "actors": _asked("deployment_model.actors"),
                "release_type": "Many releases" if n_payments > 1 else "One release",
                "release_type_details": f"{_budget(accountant)} "
                f"{_asked('deployment_model.release_type_details')}",
                "data_source_type_details": _asked("deployment_model.data_source_type_details"),
                "access_type": "Non-interactive",
                "access_type_details": "The release is published as it is.",
            },
            "accounting": {
                "post_processing": "Everything that is computed after the noise depends on noisy "
                "values and public parameters only. "
                f"{_asked('accounting.post_processing')}",
                "composition": f"{guarantee.mechanism}. {_composition(accountant)}",
            },
            "implementation": {
                "preprocessing_and_hyperparameter_tuning": _before(guarantee, steps),
                "mechanisms": f"{guarantee.mechanism}. {_SAFETY} Versions: "
                f"{', '.join(f'{name} {number}' for name, number in versions())}. "
                f"{_asked('implementation.mechanisms')}",
                "justification": _asked("implementation.justification"),
            },
            "administrative": {
                "sources": _asked("administrative.sources"),
                "notes": getattr(last, "error_statement_", "") or "No error statement.",
                "registry_authors": [_asked("administrative.registry_authors")],
            },
        },
    }
    return "".join([_HEAD, *_questions(), *_yaml(record)])


def _kind_of_product(estimator: BaseEstimator) -> str:
    if is_classifier(estimator):
        return "Machine learning model"
    # A mixture has a method sample, too, but its parameters are released.
    draws_rows = hasattr(estimator, "sample") and not hasattr(estimator, "means_")
    return "Synthetic data" if draws_rows else "Summary statistics"


def _numbers(guarantee: PrivacyGuarantee) -> dict[str, float]:
    if guarantee.delta == 0:
        return {"epsilon": float(guarantee.epsilon)}
    numbers = {"epsilon": guarantee.epsilon, "delta": guarantee.delta, "rho": guarantee.rho}
    return {name: float(value) for name, value in numbers.items() if value is not None}


def _unprotected(guarantee: PrivacyGuarantee) -> str:
    if _is_of_graphs(guarantee):
        return "The nodes of the graph, their order, and all parameters."
    number = (
        "The number of records"
        if guarantee.adjacency == "replace-one"
        else ("That there is at least one record")
    )
    return f"{number}, the names and types of columns, and all parameters."


def _budget(accountant: PrivacyAccountant | None) -> str:
    if accountant is None:
        return "No ledger counted this release."
    return (
        f"A ledger counts {len(accountant)} payment{'s' * (len(accountant) != 1)} and refuses "
        f"releases beyond epsilon={accountant.epsilon:g}, delta={accountant.delta:g}. This budget "
        "does not reset."
    )


def _composition(accountant: PrivacyAccountant | None) -> str:
    own = "The parameters above are the loss of the whole release."
    if accountant is None:
        return own
    return f"{own} The ledger adds the losses of releases by {accountant.composition} composition."


def _is_of_graphs(guarantee: PrivacyGuarantee) -> bool:
    return "edge" in guarantee.unit or "link" in guarantee.unit


def _domain(guarantee: PrivacyGuarantee, listed: str) -> str:
    if _is_of_graphs(guarantee):
        return f"All graphs on the public nodes. {listed}."
    return (
        "All data sets with the public columns, types and parameters that are listed here. Values "
        f"outside of bounds are clipped to them. {listed}."
    )


def _details(estimator: BaseEstimator, guarantee: PrivacyGuarantee) -> str:
    texts = [meaning_of_epsilon(guarantee), whom_it_protects(guarantee)]
    if isinstance(alpha := getattr(estimator, "alpha", None), float):
        texts.append(
            f"The mechanism satisfies metric privacy, with a loss of {alpha:g} for each unit of "
            "distance; epsilon is the loss at the largest distance."
        )
    return " ".join(text for text in texts if text)


def _before(guarantee: PrivacyGuarantee, steps: Sequence[str]) -> str:
    learnt = f"Steps before the release: {', '.join(steps)}. " if steps else ""
    return (
        f"{learnt}No parameter was learnt from the records without privacy, as far as the library "
        f"can see. {_asked('implementation.preprocessing_and_hyperparameter_tuning')}"
    )


def _asked(path: str) -> str:
    return f"{_QUESTION}{_QUESTIONS[path]}"


def _questions() -> Iterator[str]:
    for path, question in _QUESTIONS.items():
        yield f"#   deployment.{path}: {question}\n"


def _yaml(tree: Mapping[str, Any], indent: str = "") -> Iterator[str]:
    """Yield lines of YAML, in which strings and numbers are those of JSON."""
    for name, value in tree.items():
        if isinstance(value, Mapping):
            yield f"{indent}{name}:\n"
            yield from _yaml(value, f"{indent}  ")
        elif isinstance(value, list):
            yield f"{indent}{name}:\n"
            yield from (f"{indent}  - {_scalar(item)}\n" for item in value)
        else:
            yield f"{indent}{name}: {_scalar(value)}\n"


def _scalar(value: Any) -> str:
    if isinstance(value, float):
        # Without a point, YAML reads 1e-06 as a string.
        mantissa, mark, exponent = repr(value).partition("e")
        return f"{mantissa}{'' if '.' in mantissa else '.0'}{mark}{exponent}"
    text = json.dumps(value, ensure_ascii=False)
    # YAML takes some other characters for ends of lines, or refuses them.
    return "".join(c if c.isprintable() else f"\\U{ord(c):08x}" for c in text)
