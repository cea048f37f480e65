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
# Fields that allow only some words, one of which the curator must choose.
_TO_CHOOSE = (
    ("deployment.basic.data_product_sector", "Technology, Healthcare, Education, ...?"),
    ("deployment.deployment_model.data_source_type", "Static or Dynamic?"),
)
_SAFETY = (
    "Noise and random choices are drawn exactly, in integers, from the operating system's entropy, "
    "by the OpenDP library or by exact samplers. Errors and warnings quote no records. Running "
    "times are not protected."
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
                "data_curators": [f"{_QUESTION}Who publishes the data product?"],
                "intended_use": f"{_QUESTION}What is the data product for?",
                "data_product_type": _kind_of_product(last),
                "data_product_region": f"{_QUESTION}Which region do the data describe?",
                "description": " ".join(
                    [
                        f"{guarantee.released[:1].upper()}{guarantee.released[1:]}, released by "
                        f"{type(last).__name__}.",
                        *statements,
                        f"{_QUESTION}What are the data about?",
                    ]
                ),
                "publication_date": datetime.now(UTC).date().isoformat(),
            },
            "dp_variant": {
                "variant_name": "Approximate DP" if guarantee.delta > 0 else "Pure DP",
                "data_domain": "All data sets with the public columns, types and parameters that "
                f"are listed here. Values outside of bounds are clipped to them. {listed}.",
                "unprotected_quantities": _unprotected(guarantee),
            },
            "privacy_loss": {
                "privacy_unit": guarantee.unit,
                "privacy_unit_details": f"{guarantee.adjacency}. {neighbours(guarantee)}",
                "privacy_parameters": _numbers(guarantee),
                "privacy_parameters_details": " ".join(
                    [meaning_of_epsilon(guarantee), whom_it_protects(guarantee)]
                ).strip(),
            },
            "deployment_model": {
                "model_name": "Central",
                "model_name_details": "One party, which runs the library, reads the records.",
                "actors": f"{_QUESTION}Who can read the records, and who receives the release?",
                "release_type": "Many releases" if n_payments > 1 else "One release",
                "release_type_details": _budget(accountant),
                "data_source_type_details": f"{_QUESTION}Do new records come in over time?",
                "access_type": "Non-interactive",
                "access_type_details": "The release is published as it is.",
            },
            "accounting": {
                "post_processing": "Everything that is computed after the noise depends on noisy "
                "values and public parameters only. "
                f"{_QUESTION}What else was computed from the release before it was published?",
                "composition": f"{guarantee.mechanism}. {_composition(accountant)}",
            },
            "implementation": {
                "preprocessing_and_hyperparameter_tuning": _before(guarantee, steps),
                "mechanisms": f"{guarantee.mechanism}. {_SAFETY} Versions: "
                f"{', '.join(f'{name} {number}' for name, number in versions())}. "
                f"{_QUESTION}Who has access to the records, and how are they secured?",
                "justification": f"{_QUESTION}Why were this epsilon and this unit chosen?",
            },
            "administrative": {
                "sources": f"{_QUESTION}Where are the release, and papers about it?",
                "notes": getattr(last, "error_statement_", "") or "No error statement.",
                "registry_authors": [f"{_QUESTION}Who wrote this record?"],
            },
        },
    }
    return "".join([_HEAD, *_questions(record), *_yaml(record)])


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
    texts = ["Names and types of columns, and all parameters, which must not depend on records."]
    if guarantee.adjacency == "replace-one":
        texts.insert(0, "The number of records.")
    if "edge" in guarantee.unit or "link" in guarantee.unit:
        texts.insert(0, "The nodes of the graph, and their order.")
    return " ".join(texts)


def _budget(accountant: PrivacyAccountant | None) -> str:
    if accountant is None:
        question = "Are there other releases of the same data, and what is their total loss?"
        return f"No ledger counted this release. {_QUESTION}{question}"
    return (
        f"A ledger counts {len(accountant)} payment{'s' * (len(accountant) != 1)} and refuses "
        f"releases beyond epsilon={accountant.epsilon:g}, delta={accountant.delta:g}. This budget "
        "does not reset."
    )


def _composition(accountant: PrivacyAccountant | None) -> str:
    if accountant is None:
        return "The losses of the steps of this release compose sequentially."
    return (
        "The losses of the steps of this release compose sequentially, and releases of the ledger "
        f"by {accountant.composition} composition."
    )


def _before(guarantee: PrivacyGuarantee, steps: Sequence[str]) -> str:
    learnt = f"Steps before the release: {', '.join(steps)}. " if steps else ""
    return (
        f"{learnt}No parameter was learnt from the records without privacy, as far as the library "
        f"can see. {_QUESTION}Was anything looked at or tried on the records before, and how was "
        "it accounted for?"
    )


def _questions(record: Mapping[str, Any]) -> Iterator[str]:
    for path, value in (*_leaves(record, ()), *_TO_CHOOSE):
        if _QUESTION in str(value) or (path, value) in _TO_CHOOSE:
            yield f"#   {path}: {str(value).rpartition(_QUESTION)[2]}\n"


def _leaves(tree: Mapping[str, Any], path: tuple[str, ...]) -> Iterator[tuple[str, Any]]:
    for name, value in tree.items():
        if isinstance(value, Mapping):
            yield from _leaves(value, (*path, name))
        else:
            (single,) = value if isinstance(value, list) else [value]
            yield ".".join((*path, name)), single


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
    return json.dumps(value, ensure_ascii=False)
