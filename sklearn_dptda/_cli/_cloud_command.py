"""The command ``cloud``: a weighted cloud, released once, and where its features are."""

import json
from functools import cached_property

import numpy as np

from sklearn_dptda._cli._diagram_commands import PointsCommand, in_units
from sklearn_dptda._cli._output import new_figure
from sklearn_dptda.filtration import DTMFiltration, PrivateCloud
from sklearn_dptda.persistence import CloudResamples, CubicalPersistence, feature_regions
from sklearn_dptda.plotting import FiltrationDisplay


class Cloud(PointsCommand):
    """Release a weighted cloud under differential privacy, and the regions of its loops.

    The privacy unit is one row, or one person with --groups.

    example:
      python -m sklearn_dptda cloud points.csv --bounds 0 2 0 1.5 --epsilon 1 --m 0.02 -o out

    The command releases noisy numbers of points in the cells of a grid. All else is computed from
    these, and costs nothing: later questions to OUT/cloud.csv are free. Loops are holes in the
    plane, such as blocks between streets, lakes, or gaps of a coverage.

    choosing the numbers:
      --bounds   a box that you know without looking at the data, in two or three coordinates. If
                 you leave it out, a fifth of epsilon finds one, for which about 2,000 points are
                 needed at epsilon 1
      --m        the share of the points that each value of the distance-to-measure averages over.
                 A small share shows small holes

    what is written:
      OUT/cloud.csv        the centre of each cell with a positive weight, and its weight
      OUT/regions.geojson  for each hole: its outline in the plane, or its middle in space, births
                           and deaths, and in which share of resamples of the noise it is found.
                           The share is not a probability
      OUT/cloud.json       noisy counts, bounds, and the guarantee
      OUT/cloud.png        the distance-to-measure and the outlines
    """

    name = "cloud"
    files = ("cloud.json", "cloud.csv", "regions.geojson", "cloud.png")
    kinds = (DTMFiltration, PrivateCloud)
    hidden = frozenset({"p", "max_distance", "method", "refinement", "memory"})

    def __init__(self, args):
        super().__init__(args)
        given = self.given(DTMFiltration)
        given.pop("bounds", None)
        self.filtration = DTMFiltration(**given)
        self.private.set_params(groups=self.groups)
        if self.private.bounds is not None:
            self.private.set_params(bounds=in_units(self.scale, self.private.bounds))
        self.estimators = [self.filtration, self.private]

    def prepare(self):
        cloud, d = super().prepare(), len(self.records.columns)
        if d not in (2, 3):
            raise ValueError(f"cloud takes points of 2 or 3 coordinates; got {d}. Use --columns.")
        # Whether the grid and m can be used is public.
        grid = {"bounds": (0.0, 1.0), "resolution": self.filtration.resolution}
        DTMFiltration(self.filtration.m, **grid).fit([np.eye(2, d)])
        if self.private.bounds is not None:
            self.private.fit([cloud])
        return [cloud]

    def release(self, clouds):
        if self.private.bounds is None:
            self.private.fit(clouds)
        (self.cloud,) = self.private.transform(clouds)

    @cached_property
    def regions(self):
        """The function, its holes above the loops of the cells, and their shares."""
        # What follows from a release is not secret, so that its seed need not be.
        fitted = self.filtration.fit([self.cloud])
        resamples = CloudResamples(self.cloud, fitted, random_state=0)
        function, dimension = resamples.function, self.cloud.n_features - 1
        (diagram,) = CubicalPersistence(dimension).fit_transform([function])
        long = diagram[diagram[:, 1] - diagram[:, 0] > self.cloud.lattice_loop]
        long = long[np.argsort(long[:, 0] - long[:, 1], kind="stable")]
        regions = feature_regions(function, long, dimension)
        return function, regions, resamples.shares(regions, dimension)

    def describe(self):
        _, regions, shares = self.regions
        cells = " x ".join(map(str, self.cloud.counts.shape))
        yield f"{cells} cells for {self.cloud.n_points} records"
        kind = "loop" if self.cloud.n_features == 2 else "void"
        least = self.cloud.lattice_loop
        yield f"{len(regions)} {kind}s longer than those of the cells, {least:.3g}:"
        for region, share in zip(regions, shares, strict=True):
            place = ", ".join(f"{x:.4g}" for x in region.middle * self.scale)
            yield (
                f"  at ({place}), persistence {region.persistence:.4g}, in {share:.0%} of resamples"
            )

    def content(self):
        cloud = self.cloud
        return {
            "parameters": {
                "m": self.filtration.m,
                "bounds": [cloud.low * self.scale, cloud.high * self.scale],
                "scale": self.scale,
                "n_points": cloud.n_points,
                "noise_scale": cloud.scale / cloud.weight,
                "loop_of_cells": cloud.lattice_loop,
            },
            "counts": cloud.counts / cloud.weight,
        }

    def table(self):
        columns = [f"x{i}" for i in range(self.cloud.n_features)]
        rows = np.column_stack([self.cloud.points * self.scale, self.cloud.weights])
        return (*columns, "weight"), rows.tolist()

    def picture(self):
        function, regions, shares = self.regions
        if self.cloud.n_features == 3:
            return FiltrationDisplay(function)
        return FiltrationDisplay(function, regions=regions, shares=shares)

    def write_file(self, path):
        if path.suffix == ".geojson":
            _, regions, shares = self.regions
            features = [self._feature(*each) for each in zip(regions, shares.tolist(), strict=True)]
            collection = {"type": "FeatureCollection", "features": features}
            path.write_text(json.dumps(collection), encoding="utf-8")
        elif path.suffix == ".png":
            figure = new_figure(5.4, 4.4)
            self.picture().plot(figure.subplots())
            figure.savefig(path, dpi=150)
        else:
            super().write_file(path)

    def _feature(self, region, share):
        """Return one region as GeoJSON describes it."""
        if self.cloud.n_features == 2:
            curves = [(curve * self.scale).tolist() for curve in region.outline()]
            geometry = {"type": "Polygon", "coordinates": curves}
        else:
            place = (region.middle * self.scale).tolist()
            geometry = {"type": "Point", "coordinates": place}
        properties = {
            "birth": region.birth,
            "death": region.death,
            "persistence": region.persistence,
            "share_of_resamples": share,
        }
        return {"type": "Feature", "geometry": geometry, "properties": properties}
