"""Files of each format are read by the library that knows it, and no record is lost."""

import gzip
import io
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.io import mmwrite, savemat
from scipy.sparse import coo_array, load_npz, save_npz

import sklearn_dptda
from sklearn_dptda.__main__ import main
from sklearn_dptda._cli._formats import _OTHERS, FORMATS, NETWORKS, SHEETS
from sklearn_dptda._cli._graph_command import read_graph
from sklearn_dptda._cli._read_points import read_table
from tests._refusals import refuses

POINTS = np.random.default_rng(0).normal(size=(40, 3)).round(3)
FRAME = pd.DataFrame(POINTS, columns=["x", "y", "z"])


def rows_of(points):
    return "\n".join(" ".join(map(str, row)) for row in points)


def write_sheet(path, frame, header):
    frame.to_excel(path, index=False, header=header)


def write_mesh(path):
    import meshio

    meshio.write(path, meshio.Mesh(POINTS, [("vertex", np.arange(len(POINTS))[:, None])]))


def write_spss(path):
    import pyreadstat

    pyreadstat.write_sav(FRAME, path)


PLY = (
    "ply\nformat ascii 1.0\nelement vertex 40\nproperty double x\nproperty double y\n"
    f"property double z\nend_header\n{rows_of(POINTS)}\n"
)
ARFF = "@relation r\n" + "".join(f"@attribute {name} numeric\n" for name in "xyz") + "@data\n"
# How a file of each format is written, and the options to read it.
WRITERS = {
    "a.npy": (lambda p: np.save(p, POINTS), {}),
    "a.npz": (lambda p: np.savez(p, a=POINTS, b=POINTS[:1]), {"key": "a"}),
    "a.mat": (lambda p: savemat(p, {"a": POINTS, "b": POINTS[:1]}), {"key": "0"}),
    "a.parquet": (lambda p: FRAME.to_parquet(p), {}),
    "a.pq": (lambda p: FRAME.to_parquet(p), {}),
    "a.feather": (lambda p: FRAME.to_feather(p), {}),
    "a.arrow": (lambda p: FRAME.to_feather(p), {}),
    "a.json": (lambda p: FRAME.to_json(p, orient="records"), {}),
    "a.jsonl": (lambda p: FRAME.to_json(p, orient="records", lines=True), {}),
    "a.ndjson": (lambda p: FRAME.to_json(p, orient="records", lines=True), {}),
    "a.xlsx": (lambda p: write_sheet(p, FRAME, True), {"header": True}),
    "b.xlsx": (lambda p: write_sheet(p, FRAME, False), {}),
    "a.dta": (lambda p: FRAME.to_stata(p, write_index=False), {}),
    "a.sav": (write_spss, {}),
    "a.arff": (
        lambda p: p.write_text(ARFF + "\n".join(",".join(map(str, row)) for row in POINTS)),
        {},
    ),
    "a.off": (lambda p: p.write_text(f"OFF\n# a note\n40 1 0\n{rows_of(POINTS)}\n3 0 1 2\n"), {}),
    "b.off": (lambda p: p.write_text(f"nOFF\n3 40 0 0\n{rows_of(POINTS)}\n"), {}),
    "a.ply": (lambda p: p.write_text(PLY), {}),
    "b.ply": (write_mesh, {}),
    "a.vtk": (write_mesh, {}),
    "a.vtu": (write_mesh, {}),
    "a.csv.gz": (lambda p: p.write_bytes(gzip.compress(FRAME.to_csv(index=False).encode())), {}),
    "a.xyz": (lambda p: p.write_text(rows_of(POINTS)), {}),
}
WRITERS["a.csv.gz"] = (WRITERS["a.csv.gz"][0], {"header": True})
# pandas and SciPy write none of these, so that a frame of a library stands for the file.
UNWRITTEN = {".ods", ".sas7bdat", ".xpt"}


def test_each_format_has_a_file():
    assert (FORMATS | SHEETS).keys() - UNWRITTEN <= {Path(name).suffix for name in WRITERS}


@pytest.mark.parametrize("name", WRITERS)
def test_records_of_a_file_are_the_records_that_are_read(name, tmp_path):
    write, how = WRITERS[name]
    write(tmp_path / name)
    table = read_table(tmp_path / name, **how)
    found = table.numbers()
    assert found.shape == POINTS.shape
    # Texts of VTK and the floats of PLY have fewer digits.
    np.testing.assert_allclose(found, POINTS, atol=1e-6)
    assert table.names in (None, ["x", "y", "z"])


def test_sheets_ask_whether_their_first_row_contains_names(tmp_path):
    write_sheet(tmp_path / "a.xlsx", FRAME, True)
    refuses(r"first line .* may contain the names", read_table, tmp_path / "a.xlsx")
    frame = FRAME.assign(job=["cook", None] * 20)
    write_sheet(tmp_path / "a.xlsx", frame, True)
    table = read_table(tmp_path / "a.xlsx", header=True)
    assert table.names[-1] == "job" and len(table.columns[0]) == 40


@pytest.mark.parametrize("suffix", ["parquet", "feather"])
def test_an_index_is_a_column_and_numbers_of_rows_are_none(suffix, tmp_path):
    import pyarrow.feather

    path, indexed = tmp_path / f"a.{suffix}", FRAME.set_index("x")
    tables = {"named": indexed, "unnamed": indexed.rename_axis(None), "default": FRAME}
    for name, frame in tables.items():
        if suffix == "parquet":
            frame.to_parquet(path)
        else:
            pyarrow.feather.write_feather(pyarrow.Table.from_pandas(frame), str(path))
        if name == "unnamed":
            refuses(r"first column of .* has no name", read_table, path)
        table = read_table(path, columns=["0"] if name == "unnamed" else ["x"])
        np.testing.assert_array_equal(table.columns[0], POINTS[:, 0])
        assert name != "default" or len(read_table(path).columns) == 3


@pytest.mark.parametrize(
    "records", ['{"a": [{"x": 1}]}', '[{"x": {"y": 1}}]', '[{"x": [1, 2]}]', '{"x": 1}\n{"x": 2}']
)
def test_nested_records_of_json_say_how_they_become_flat(records, tmp_path):
    (tmp_path / "a.json").write_text(records)
    refuses(r"list of flat JSON records, .*jq .*json_normalize", read_table, tmp_path / "a.json")


@pytest.mark.parametrize(("name", "text"), [("a.json", "[]"), ("a.jsonl", "")])
def test_files_without_a_record_are_refused(name, text, tmp_path):
    (tmp_path / name).write_text(text)
    refuses("has no records", read_table, tmp_path / name)


def test_libraries_print_nothing_of_their_own(tmp_path, capfd):
    for name in ("a.vtk", "a.ply", "a.vtu"):
        (tmp_path / name).write_text("malady")
        refuses("is not a file of points", read_table, tmp_path / name)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("names", ["x y intensity z", "z y x", "nx ny nz x y z"])
def test_coordinates_of_a_text_in_ply_are_never_taken_by_their_places(names, tmp_path):
    header = "".join(f"property double {name}\n" for name in names.split())
    row = " ".join("123456"[: len(names.split())])
    text = f"ply\nformat ascii 1.0\nelement vertex 1\n{header}end_header\n{row}\n"
    (tmp_path / "a.ply").write_text(text)
    refuses("first properties .* must be x, y and z", read_table, tmp_path / "a.ply")


def test_one_of_several_sheets_is_chosen(tmp_path, capsys):
    path = tmp_path / "a.xlsx"
    with pd.ExcelWriter(path) as book:
        for name, frame in (("notes", FRAME[:2]), ("data", FRAME)):
            frame.to_excel(book, sheet_name=name, index=False, header=False)
    for key in (None, "other", "2"):
        refuses("--key: choose one of the 2 sheets, by name", read_table, path, key=key)
    for key in ("data", "1"):
        assert len(read_table(path, key=key).numbers()) == 40
    assert main(["look", str(path), "--key", "data"]) == 0
    said = capsys.readouterr().out
    assert "--key data" in said and "--no-header" in said and "--separator" not in said


@pytest.mark.parametrize("suffix", ["sas7bdat", "xpt"])
def test_formats_that_nothing_writes_are_read_by_pandas(suffix, tmp_path, monkeypatch):
    (tmp_path / f"a.{suffix}").write_bytes(b"SAS")
    refuses("is not a SAS file", read_table, tmp_path / f"a.{suffix}")
    monkeypatch.setattr(pd, "read_sas", lambda path, encoding: FRAME)
    assert len(read_table(tmp_path / f"a.{suffix}").numbers()) == 40


@pytest.mark.parametrize("suffix", sorted(FORMATS | SHEETS | NETWORKS))
def test_broken_files_are_refused_in_one_sentence_without_their_content(suffix, tmp_path):
    path = tmp_path / f"a{suffix}"
    path.write_bytes(b"malady\n1 2 3\nmalady")
    with pytest.raises(ValueError, match=rf"a\{suffix} is (not )?an? ") as caught:
        read_graph(path, 3) if suffix in NETWORKS else read_table(path)
    assert "malady" not in str(caught.value)


@pytest.mark.parametrize("start", _OTHERS)
def test_other_files_are_refused_by_their_name(start, tmp_path):
    (tmp_path / "a.csv").write_bytes(start + b"\0malady")
    refuses(r"a\.csv is (a|an|compressed) .*: ", read_table, tmp_path / "a.csv")


def test_a_missing_library_is_named(tmp_path, monkeypatch):
    write_sheet(tmp_path / "a.xlsx", FRAME, False)
    monkeypatch.setitem(__import__("sys").modules, "openpyxl", None)
    with pytest.raises(ValueError, match=r"is a workbook\. To read it, install openpyxl, or save"):
        read_table(tmp_path / "a.xlsx")


def test_files_of_gzip_that_would_inflate_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("sklearn_dptda._cli._formats.MAX_INFLATED_BYTES", 1 << 10)
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(b"1\n" * 200_000))
    refuses("would expand to", read_table, tmp_path / "a.csv.gz")


EDGES = [(0, 1), (0, 2), (1, 2), (3, 4), (4, 5), (5, 3), (5, 6), (6, 7)]
GML = (
    "graph [\n"
    + "".join(f'node [ id {i} label "{i}" ]\n' for i in range(9))
    + "".join(f"edge [ source {a} target {b} ]\n" for a, b in EDGES)
    + "]\n"
)
PAJEK = (
    "*Vertices 9\n"
    + "".join(f'{i + 1} "{i}"\n' for i in range(9))
    + "*Edges\n"
    + "".join(f"{a + 1} {b + 1} 1\n" for a, b in EDGES)
)


def write_graphml(path):
    import networkx

    graph = networkx.Graph(EDGES)
    networkx.write_graphml(graph, path)


MATRIX = np.zeros((9, 9))
for a, b in EDGES:
    MATRIX[a, b] = MATRIX[b, a] = 1


def write_matrix(path):
    target = io.BytesIO()
    mmwrite(target, coo_array(MATRIX))
    raw = target.getvalue()
    path.write_bytes(gzip.compress(raw) if path.suffix == ".gz" else raw)


def mixed(separator):
    """Edges of which some have a weight."""
    lines = [separator.join(map(str, edge)) for edge in EDGES]
    return "\n".join(line + f"{separator}0.5" * (i > 2) for i, line in enumerate(lines))


NETWORK_FILES = {
    "a.gml": lambda p: p.write_text(GML),
    "a.net": lambda p: p.write_text(PAJEK),
    "a.graphml": write_graphml,
    "a.mtx": write_matrix,
    "a.mtx.gz": write_matrix,
    "a.npy": lambda p: np.save(p, EDGES),
    "matrix.npy": lambda p: np.save(p, MATRIX),
    "dense.npz": lambda p: np.savez(p, MATRIX),
    "sparse.npz": lambda p: save_npz(p, coo_array(MATRIX)),
    "a.ncol": lambda p: p.write_text(mixed(" ")),
    "a.csv": lambda p: p.write_text(mixed(",")),
    "a.tsv": lambda p: p.write_text(mixed("\t")),
    "a.txt.gz": lambda p: p.write_bytes(gzip.compress(mixed(" ").encode())),
}


@pytest.mark.parametrize("name", NETWORK_FILES)
def test_edges_of_a_file_are_the_edges_that_are_released(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    NETWORK_FILES[name](tmp_path / name)
    Path("nodes.txt").write_text("\n".join(map(str, range(9))))
    nodes = "nodes.txt" if name.partition(".")[2] in ("gml", "net", "graphml") else "9"
    # Each pair is flipped with probability 1e-13.
    assert main(["graph", name, "--nodes", nodes, "--epsilon", "30", "-o", "out"]) == 0
    released = load_npz("out/graph.npz")
    assert sorted(zip(*np.nonzero(np.triu(released.toarray())), strict=True)) == sorted(
        tuple(sorted(edge)) for edge in EDGES
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("*Edges", "*Edgeslist"), r"\*Vertices and one list of \*Edges or \*Arcs are read"),
        (("*Edges", '*Edges :1 "malady"'), r"several relations as GraphML"),
        (("*Edges\n", "*Arcs\n1 5 1\n*Edges\n"), r"one list"),
        (('"8"', '"7"'), "a different label for each node"),
        (("*Edges\n", "*Edges\n1 12 1\n"), "is not a network"),
    ],
)
def test_networks_of_pajek_lose_no_node_and_no_edge(change, message, tmp_path):
    path = tmp_path / "a.net"
    path.write_text(PAJEK.replace(*change))
    with pytest.raises(ValueError, match=message) as caught:
        read_graph(path, 9)
    assert "malady" not in str(caught.value)
    # A title, and letters of any case, are no other section.
    path.write_text("*Network a\n" + PAJEK.replace("*Edges", "*edges"))
    assert len(read_graph(path, list("012345678"))) == len(EDGES)


def test_graph_command_says_how_many_edges_it_read_and_what_nodes_are(tmp_path, capsys):
    path, nodes = tmp_path / "a.gml", tmp_path / "nodes.txt"
    nodes.write_text("\n".join(map(str, range(9))))
    command = ["graph", str(path), "--nodes", str(nodes), "--force", "-o", str(tmp_path / "o")]
    path.write_text(GML)
    assert main(command) == 0
    said = capsys.readouterr().err
    assert "a.gml: 9 node(s), 8 edge(s)." in said and "9 nodes, 8 different edge(s)" in said
    path.write_text(GML.replace('label "', 'label "n'))
    assert main(command) == 2
    assert "Nodes of GML and Pajek are their labels" in capsys.readouterr().err
    path.write_text(GML.replace("label", "other"))
    assert main(command) == 2
    assert "with a different label for each node" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("content", "options"),
    [
        ("#n0,x\n#n1,x\nx,y\ny,#n0\n", ["--comment", "none"]),
        ("Smith, Ann;x\n#n1;x\nx;y\ny;Smith, Ann\n", ["--comment", "none", "--separator", ";"]),
    ],
)
def test_graph_command_loses_no_edge_of_names(content, options, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("tags.csv").write_text(content)
    Path("nodes.txt").write_text("#n0\n#n1\nx\ny\nSmith, Ann\n")
    command = ["graph", "tags.csv", "--nodes", "nodes.txt", "--epsilon", "30", "-o", "out"]
    assert main(command) == 2
    assert main([*command, *options]) == 0
    assert load_npz("out/graph.npz").sum() == 8


def test_categories_with_commas_are_stated_in_quotation_marks_or_in_a_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    values = ["under $25,000", "$25,000 or more"]
    pd.DataFrame({"income": values * 200}).to_csv("income.csv", index=False)
    Path("values.txt").write_text("\n".join(values))
    quoted = ",".join(f'"{value}"' for value in values)
    for i, stated in enumerate((quoted, "@values.txt")):
        command = ["synthesize", "income.csv", "--header", "--categories", f"income={stated}"]
        assert main([*command, "-o", f"out{i}", "--epsilon", "9"]) == 0
        assert set(pd.read_csv(f"out{i}/synthetic.csv")["income"]) == set(values)


def test_page_lists_all_formats():
    page = Path(sklearn_dptda.__file__).parent.parent / "doc" / "guide" / "command_line.md"
    if not page.is_file():
        pytest.skip("the documentation is not beside the tests: an installed package")
    text = page.read_text(encoding="utf-8")
    for suffix, known in FORMATS.items():
        assert f"`{suffix}`" in text and known.library in text, suffix
    assert all(f"`{suffix}`" in text for suffix in (*NETWORKS, *SHEETS))


def test_look_says_how_a_network_is_released(tmp_path, capsys):
    (tmp_path / "a.gml").write_text(GML)
    assert main(["look", str(tmp_path / "a.gml")]) == 0
    assert "graph" in capsys.readouterr().out
    (tmp_path / "a.json").write_text(json.dumps([{"age": 3, "job": "cook"}] * 30))
    assert main(["look", str(tmp_path / "a.json")]) == 0
    assert "30 rows, 2 columns" in capsys.readouterr().out


def test_sheets_follow_the_rules_of_lines(tmp_path, capsys):
    rows = [["A title", None], [None, None], ["x", "y"], [1.5, 2], [None, None], [3, 4], [5, 6]]
    path = tmp_path / "a.xlsx"
    pd.DataFrame(rows).to_excel(path, index=False, header=False)
    refuses("may contain the names", read_table, path)
    table = read_table(path, skip_lines=1, header=True)
    assert table.numbers().tolist() == [[1.5, 2], [3, 4], [5, 6]] and table.names == ["x", "y"]
    assert "2 blank row(s)" in capsys.readouterr().err
    wide = pd.DataFrame([["A title", None, None], ["x", "y", "z"], [1.5, 2, 3], [3, 4, 5]])
    wide.to_excel(path, index=False, header=False)
    refuses(r"cannot contain the names.*--skip-lines", read_table, path, header=True)


def test_numbers_of_columns_are_those_of_the_file_in_all_options(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = [f"R{i},{i % 9},{100 + i % 7 + 0.5},{i % 3}" for i in range(300)]
    Path("own.csv").write_text('id,"a, x","b, y",c\n' + "\n".join(rows))
    command = ["synthesize", "own.csv", "--header", "--columns", "1", "2", "c", "--epsilon", "9"]
    command += ["--column-bounds", "1", "0", "9", "--column-bounds", "2", "90", "1.2e2"]
    command += ["--column-bounds", "c", "-1e0", "10", "--integers", "1", "--seed", "0", "-o", "o"]
    assert main(command) == 0
    drawn = pd.read_csv("o/synthetic.csv")
    assert (drawn["a, x"] % 1 == 0).all() and (drawn["b, y"] % 1 != 0).any()
    assert drawn["b, y"].between(90, 120).all() and drawn["a, x"].between(0, 9).all()
    table = read_table("own.csv", header=True, columns=["1", "2"], fill=["2=7"])
    assert table.numbers().shape == (300, 2)


def test_missing_categories_of_parquet_are_missing(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    table = pd.DataFrame({"x": [1.5, 2.5, None, 3.5] * 40, "s": ["a", None, "b", "a"] * 40})
    table.to_parquet("a.parquet")
    command = ["synthesize", "a.parquet", "--column-bounds", "x", "0", "5", "--categories", "s=a,b"]
    assert main([*command, "--missing", "--seed", "0", "-o", "o"]) == 0


@pytest.mark.parametrize("suffix", [".obj", ".pcd", ".por", ".xls"])
def test_formats_that_are_not_read_are_converted_first(suffix, tmp_path):
    path = tmp_path / f"a{suffix}"
    path.write_text("v 1 2 3\nf 1 1 1\n")
    refuses("in a format that is not read: convert it to", read_table, path)
