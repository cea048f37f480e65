"""Reports of releases: what they say, what they never hold, that they stand alone."""

import re
from html.parser import HTMLParser

import numpy as np
import pytest
from matplotlib.figure import Figure
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline

import sklearn_dptda
from sklearn_dptda import DTMFiltration, PrivatePersistence
from sklearn_dptda.__main__ import main
from sklearn_dptda.cluster import DPLloyd
from sklearn_dptda.datasets import make_two_circles
from sklearn_dptda.graph import EdgeFlip
from sklearn_dptda.plotting import PersistenceDiagramDisplay, release_report
from sklearn_dptda.plotting._release_report import budget_over_time
from sklearn_dptda.privacy import PrivacyAccountant
from tests._refusals import refuses

X = np.random.default_rng(0).uniform(size=(300, 2))


class _Page(HTMLParser):
    """Tags that are open, and places that a browser would load something from."""

    def __init__(self, text):
        super().__init__()
        self.open, self.loaded, self.words = [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        named = dict(attributes)
        where = [named.get(name) for name in ("src", "href", "xlink:href", "data", "action")]
        self.loaded += [place for place in where if place and not place.startswith("#")]
        if tag not in ("meta", "br", "img", "link", "hr", "input"):
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes)
        if self.open and self.open[-1] == tag:
            self.open.pop()

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.words.append(data)


def page_of(*args, **options):
    text = release_report(*args, **options)
    page = _Page(text)
    assert page.open == [] and page.loaded == []
    return text, " ".join(" ".join(page.words).split())


def test_release_report_says_the_guarantee_and_the_budget():
    budget = PrivacyAccountant(3.0, 1e-3)
    budget.spend(0.5, adjacency="add-remove", what="<counts> & more")
    private = DPLloyd(2, 1.0, bounds=(0, 1), accountant=budget).fit(X)
    text, words = page_of(private, statements=["Two clusters."])
    assert str(private.privacy_guarantee_) in words
    assert "can be published under the guarantee" in words and "Two clusters." in words
    assert "&lt;counts&gt; &amp; more" in text and "<counts>" not in text
    # Before and after each payment.
    assert re.search(r"3 2\.5 2 .*DPLloyd .* 1 2\.5 1\.5", words)
    assert "1.5 of epsilon is left" in words and sklearn_dptda.__version__ in words


@pytest.mark.parametrize("composition", ["basic", "zcdp"])
def test_budget_over_time_adds_up_without_paying_again(composition, monkeypatch):
    budget = PrivacyAccountant(3.0, 1e-3, composition=composition)
    left = [budget.remaining()]
    for rho in (0.01, None, 0.02):
        budget.spend(0.5, rho=rho)
        left.append(budget.remaining())
    monkeypatch.delattr(PrivacyAccountant, "spend")
    assert budget_over_time(budget) == left


# A seed would be told. The warning is a false alarm of Laplace noise in one of 40,000 fits.
@pytest.mark.filterwarnings("ignore:.* of the rows lie outside the bounds")
@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_release_report_says_what_epsilon_means_and_protects(delta):
    private = DPLloyd(2, 1.0, delta, bounds=(0, 1)).fit(X)
    _, words = page_of(private, parameters={"file": "people.csv", "nothing": None})
    assert "If one row is added or removed, the probability of every outcome" in words
    assert "at most by the factor e^epsilon = 2.72" in words
    assert ("additional probability of 1e-06" in words) == (delta > 0)
    assert "protects one row. A person with k rows has up to k times this" in words
    assert ("up to k e^((k - 1) epsilon) times this delta" in words) == (delta > 0)
    assert "people.csv" in words and "nothing" not in words


def test_release_report_is_about_edges_or_people():
    graph = EdgeFlip(800.0).fit(1 - np.eye(4))
    _, words = page_of(graph)
    assert "protects one edge. A person with k edges has up to k times this loss." in words
    assert "If one edge is added or removed, the probability" in words
    assert "by the factor e^epsilon = e^800" in words
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame(X, columns=["x", "y"]).assign(who=np.arange(300) // 3)
    _, words = page_of(DPLloyd(2, 1.0, bounds=(0, 1), groups="who").fit(table))
    assert "A person with k" not in words
    assert "If all rows of one person, by 'who', are added or removed" in words


def test_release_report_contains_no_record():
    record = 0.123456789012345
    rows = np.vstack([X, [[record, record]]])
    private = DPLloyd(2, 1.0, bounds=(0, 1), accountant=PrivacyAccountant(9.0, 1e-3)).fit(rows)
    assert "123456789" not in release_report(private)


@pytest.mark.parametrize(
    ("private", "reason"),
    [
        (DPLloyd(2, 1.0, bounds=(0, 1), random_state=0), "known seed"),
        (DPLloyd(2, np.inf, bounds=(0, 1)), "No privacy"),
    ],
)
def test_release_report_says_what_is_no_private_release(private, reason):
    _, words = page_of(private.fit(X))
    assert "Do not publish this release as private" in words and reason in words
    assert "No ledger counted this release" in words
    assert "e^epsilon" not in words and "A person with k" not in words


@pytest.mark.conformance
def test_release_report_contains_its_pictures():
    functions = DTMFiltration(0.2, bounds=(-3, 3.5)).fit_transform([make_two_circles(800)])
    private = PrivatePersistence(4.0).fit(functions)
    display = PersistenceDiagramDisplay(private.transform(functions)[0])
    figure = Figure()
    figure.add_subplot().plot([0, 1])
    assert "<svg" in page_of(private, picture=figure)[0]
    text, words = page_of(private, picture=display)
    assert private.error_statement_ in words
    assert "Plotly.newPlot" in text or "<svg" in text
    # Without plotly the same diagram is a drawing.
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sklearn_dptda.plotting._release_report.find_spec", lambda name: None)
        assert "<svg" in page_of(private, picture=display)[0]


@pytest.mark.conformance
def test_release_report_is_about_a_whole_pipeline():
    pipeline = make_pipeline(DTMFiltration(0.2, bounds=(-3, 3.5)), PrivatePersistence(4.0))
    pipeline.fit_transform([make_two_circles(800)])
    _, words = page_of(pipeline)
    assert "DTMFiltration: m" in words and "epsilon=4" in words


def test_release_report_refuses_unfitted_estimators():
    refuses(None, release_report, DPLloyd(2, bounds=(0, 1)), error=NotFittedError)


@pytest.mark.conformance
def test_report_option_writes_a_report(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    np.save("rows.npy", X)
    command = ["cluster", "rows.npy", "--bounds", "0", "1", "--ledger", "l.db"]
    assert main([*command, "--budget", "3", "1e-3", "--report", "report.html", "-o", "out"]) == 0
    words = " ".join(_Page((tmp_path / "report.html").read_text("utf-8")).words)
    assert "cluster(s) of weight" in words and "2 of epsilon is left" in words
    assert "rows.npy" in words and "None" not in words
    assert "standard deviation of the privacy noise" in words
    # A report in a folder that does not exist is refused before anything is paid.
    assert main([*command, "--report", "no/report.html", "-o", "other"]) == 2
    assert "there is no folder" in capsys.readouterr().err
    assert len(PrivacyAccountant.open("l.db")) == 1
    # The run creates the folder of the results, and the folders above it.
    assert main([*command, "--report", "new/report.html", "-o", "new/out"]) == 0
    assert main([*command, "--report", "c1/report.html", "-o", "c1"]) == 0
    assert (tmp_path / "new" / "report.html").is_file()
    assert (tmp_path / "c1" / "report.html").is_file()
