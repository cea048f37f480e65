#!/usr/bin/env bash
# In a Pajek file, a line "1 2 3" below *Edgeslist joins node 1 with the nodes 2 and 3. networkx
# 3.6.1 takes the section for *Edges, and the second neighbour for a weight: it reads one edge of
# weight 3, and none to node 3. igraph 1.0.0 reads both edges.
# Seen: "networkx: a-b of weight 3.0" and "igraph: a-b, a-c".
set -euo pipefail
folder=$(mktemp -d); trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q "networkx==3.6.1" "igraph==1.0.0"
cd "$folder"
printf '*Vertices 3\n1 "a"\n2 "b"\n3 "c"\n*Edgeslist\n1 2 3\n' > graph.net
env/bin/python - > seen.txt <<'PY'
import igraph, networkx
edges = networkx.read_pajek("graph.net").edges(data="weight")
print("networkx:", ", ".join(f"{a}-{b} of weight {weight}" for a, b, weight in edges))
graph = igraph.Graph.Read_Pajek("graph.net")
print("igraph:", ", ".join("-".join(graph.vs[edge.tuple]["name"]) for edge in graph.es))
PY
cat seen.txt
diff <(printf 'networkx: a-b of weight 3.0\nigraph: a-b, a-c\n') seen.txt
