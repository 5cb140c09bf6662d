"""FELRec-S: a list of signals and two small networks.

    score(user, item) = item network(item features) + pair network(pair features) + match(sequence, item)
                        + cosine(user, item)

The item part is the same for every user. Pairs are the few hundred items that a signal has features for. The match of
a pair is what the signal `sequence` adds, the cosine is that of FELRec's cached vectors; both are off by default.
Training is the softmax over the whole catalogue of what would have been served just before each event.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from felrec.abilities import Comparison, ErasureContext, Linked, Part
from felrec.config import TrainingSettings
from felrec.data.batches import InTime, TimeBatch
from felrec.data.events import Events, RowChange, Rows
from felrec.data.pending import Pending
from felrec.data.tables.table import RowsByTable, TableState
from felrec.model.compiled_events import CompiledChange, CompiledEvents
from felrec.model.compiled_loss import CompiledLoss
from felrec.model.compiled_ranking import CompiledRanking
from felrec.model.counted_vectors import CountedVectors
from felrec.model.explanation import explain
from felrec.model.felrec_s_settings import SEQUENCE, FELRecSSettings
from felrec.model.item_scores import ItemScores
from felrec.model.kernels.native.library import library
from felrec.model.mlp_ensemble import MLPEnsemble
from felrec.model.signals.pairs import Candidates, PairFeatures, collect
from felrec.model.signals.sequence_network import SequenceNetwork
from felrec.model.signals.signal_set import SignalName, SignalSet
from felrec.model.signals.vectors import VectorNetwork, Vectors
from felrec.model.weight_names import name_in_files, without_vectors
from felrec.model_kind import ModelKind
from felrec.peers import ALONE
from felrec.recommender import EVERYTHING, LearnedWeights, Queries, Tensors

CONTEXT_FEATURES = ("item.log_events", "item.score", "vectors.cosine")  # what the pair network also reads
_CELLS = 1 << 24  # scores that a loss may hold: with a large catalogue fewer events of a batch are learned from
_RECENT_USERS = 2048  # among which the auxiliary loss classifies the user of an event
_MANY_ITEMS = 5_000  # from which on new items have their full weight and lift
_ENOUGH_ITEMS = 2  # below, there is nothing to choose from


class FELRecS(LearnedWeights):
    """The default model. Its parameters do not depend on the number of users and items."""

    represents = EVERYTHING
    reads_weights = True
    peers = ALONE  # the compiled kernels divide the loss of a batch among them; each applies the whole batch

    def __init__(
        self, settings: FELRecSSettings | None = None, seed: int = 0, device: torch.device | str = "cpu"
    ) -> None:
        super().__init__()
        self.settings = s = settings or FELRecSSettings()
        self.device, self.version = torch.device(device), 0
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            sizes = (s.width, s.layers, s.heads, s.feed_forward, s.history_length)
            self.vector_network = VectorNetwork(*sizes) if "vectors" in s.signals else None
            of_sequence = (s.sequence_width, s.width, s.heads, s.feed_forward, s.history_length)
            self.sequence_network = SequenceNetwork(*of_sequence) if "sequence" in s.signals else None
            self.signals = self._new_signals()
            of_item, of_pair, of_log = (
                len(names) for names in (self.signals.item_names, self.signals.pair_names, self.signals.log_names)
            )
            self.item_network = MLPEnsemble(s.members, of_item, s.hidden) if of_item else None
            self.pair_network = MLPEnsemble(s.members, of_pair + len(self._context) + of_log, s.hidden, s.hidden)
        slopes = max(0, of_item - of_log - 1)  # of all item features that more is better of: all but the age
        self.item_slopes = nn.Parameter(torch.full((slopes,), 0.15))  # popularity counts before it is learned
        self.to(self.device)
        self._recent_users = np.zeros(0, dtype=np.int32)
        self._events: CompiledEvents | None = None  # made when they are first needed

    def _new_signals(self) -> SignalSet:
        s = self.settings
        sizes = {"repetition": s.own_items, "together": s.near_items, "follows": s.next_items, "ahead": s.ahead_items}
        networks = (self.sequence_network, self.vector_network)
        return SignalSet(s.signals, s.history_length, sizes, *networks, s.width, self.device)

    @property
    def _context(self) -> tuple[str, ...]:
        """What the pair network reads beside the features of signals."""
        return CONTEXT_FEATURES + (("sequence.match",) if "sequence" in self.settings.signals else ())

    # Scoring

    def score(self, queries: Queries, candidates: Rows) -> Tensor:
        """Scores (B, C); -inf for an item without events."""
        return self.score_with(queries, self.item_scores(candidates))

    def item_scores(self, candidates: Rows) -> ItemScores:
        """The part of a score that is the same for every query."""
        with torch.no_grad():
            if not self.prunes:
                return ItemScores.computed(candidates, self.signals, self._item_network)
            return ItemScores.compiled_from(candidates, self.signals, self.item_network, self.item_slopes)

    def renew_item_scores(self, scores: ItemScores, change: RowChange) -> bool:
        """Bring item scores up to date with a change that was applied; False if they must be computed again."""
        with torch.no_grad():
            return scores.renew(self.signals.touched_items(change), self.signals, self._item_network)

    def score_with(self, queries: Queries, items: ItemScores) -> Tensor:
        """Scores (B, C) of the candidates of `items`."""
        with torch.no_grad():
            return self._sum(queries, items, self._match(queries, items))

    def score_without(self, signal: SignalName, queries: Queries, candidates: Rows) -> Tensor:
        """Scores (B, C) as they would be if a signal knew nothing of these users and items."""
        with torch.no_grad():
            items = self.item_scores(candidates)
            if signal == "trend":
                items = ItemScores.computed(
                    candidates, self.signals, lambda features: self._item_network(torch.zeros_like(features))
                )
            match = self._match(queries, items)
            if signal == "vectors":
                match.zero_()
            return self._sum(queries, items, match, silent=signal)

    def explain(self, user: int, time: float, items: Rows) -> list[list[Part]]:
        """For each item, what raises its score for a user, most first."""
        return explain(self, user, time, items)

    def linked_items(self, item: int) -> Linked | None:
        """The items that the same users took close to an item; None without the signal `together`."""
        together = self.signals.together
        return together.similar(item) if together else None

    def users_near_item(self, item: int) -> Rows | None:
        """Users who lately took items that are linked to an item; None without the signal `together`."""
        return self._counted.users_near_item(item) if self._counted else None

    def users_near_user(self, user: int) -> Rows | None:
        """Users who lately took the items of a user; None without the signal `together`."""
        return self._counted.users_near_user(user) if self._counted else None

    @property
    def _counted(self) -> CountedVectors | None:
        together = self.signals.together
        return CountedVectors(together, self.signals.recent) if together else None

    def _sum(self, queries: Queries, items: ItemScores, match: Tensor, silent: SignalName | None = None) -> Tensor:
        pairs, gains = self._pair_scores(queries, items, match, silent)
        scores = match + items.scores[:, 0].to(self.device)
        _add(scores, pairs, gains.mean(dim=1))
        unseen = torch.from_numpy(items.candidates.events == 0).to(self.device)
        return scores.masked_fill_(unseen, -torch.inf)

    @property
    def prunes(self) -> bool:
        """Whether there are compiled kernels; not on a GPU."""
        return self.device.type == "cpu" and library() is not None

    def ranking(self) -> CompiledRanking:
        """Finds the items with the highest scores, by the compiled kernels."""
        return CompiledRanking(self.signals, self.item_network, self.item_slopes, self.pair_network)

    def compare(
        self, queries: Queries, candidates: Rows, targets: Rows, leave_out: Pending, others: Rows
    ) -> Comparison | None:
        """Compare targets with all candidates, by the compiled kernels; None if these are not all items with events."""
        counts = self.signals.recent.items.columns["count"]
        if not self.prunes or not np.array_equal(candidates, np.flatnonzero(counts)):
            return None
        return self.ranking().compare(queries, targets, leave_out, others)

    def pair_features(self, queries: Queries, candidates: Candidates, silent: SignalName | None = None) -> PairFeatures:
        """All pairs of a query and a candidate that a signal has features for, with their features by name."""
        signals, rates = self.signals, self.signals.hit_rates
        found = collect(
            signals.of_pairs,
            queries,
            candidates,
            signals.recent,
            with_buckets=rates is not None,
            silent=signals.pair_signal(silent),
        )
        if rates is None or found.buckets is None:
            return found
        features = np.concatenate([found.features, rates.features(found.buckets[:, : len(rates.names)])], axis=1)
        return PairFeatures(found.pairs, found.names + rates.names, features, found.buckets)

    def _item_network(self, features: Tensor) -> Tensor:
        """Scores (M, members) of items by their features (M, F)."""
        if self.item_network is None:
            return torch.zeros(len(features), self.settings.members, device=self.device)
        features = features.to(self.device)
        learned: Tensor = self.item_network(features, of_all=self._log_features())
        return learned + (features[:, : len(self.item_slopes)] @ self.item_slopes)[:, None]

    def _match(self, queries: Queries, items: ItemScores, *, learning: bool = False) -> Tensor:
        """The dense part (B, C) of a score."""
        if self.signals.vectors is None:
            return torch.zeros(len(queries), len(items.candidates), device=self.device)
        log_events = items.log_events.to(self.device)
        return self.signals.vectors.match(queries, items.candidates.rows, log_events, learning=learning)

    def _pair_scores(
        self, queries: Queries, items: ItemScores, match: Tensor, silent: SignalName | None = None
    ) -> tuple[PairFeatures, Tensor]:
        """What the pair network and the sequence add (M, members) for each pair."""
        found = self.pair_features(queries, items.candidates, silent)
        query, column = torch.from_numpy(found.pairs.query), torch.from_numpy(found.pairs.column)
        expected, log_events = items.served[column].to(self.device), items.log_events[column].to(self.device)
        context, matches = [log_events, expected, match.detach()[query, column]], torch.zeros(1, device=self.device)
        if sequence := self.signals.sequence:
            rows = items.candidates.rows[found.pairs.column]
            matches = sequence.matches(queries, found.pairs.query, rows) * (silent != "sequence")
            context.append(matches.detach())
        inputs = [
            torch.from_numpy(found.features).to(self.device),
            torch.stack(context, dim=1),
            self._log_features().expand(len(query), -1),
        ]
        gains: Tensor = self.pair_network(torch.cat(inputs, dim=1)) + matches[:, None]
        return found, gains

    def _log_features(self) -> Tensor:
        profile = self.signals.profile
        return torch.from_numpy(profile.features if profile else np.zeros(0, np.float32)).to(self.device)

    # Observing

    def observe(self, block: Events) -> None:
        """Apply a block of events to all signals."""
        self.apply_change(self.change(block))

    def change(self, block: Events) -> RowChange:
        """The rows that a block changes, as they will be. Reads only."""
        return self._compiled_events.change(block) if self.prunes and len(block) else self.signals.change(block)

    def apply_change(self, change: RowChange) -> None:
        """Copy the rows of a change."""
        if isinstance(change, CompiledChange):
            self._compiled_events.apply(change)
        else:
            self.signals.apply_change(change)
        self.version += 1

    @property
    def _compiled_events(self) -> CompiledEvents:
        if self._events is None or self._events.signals is not self.signals:
            self._events = CompiledEvents(self.signals)
        return self._events

    def forget(self, user: int, context: ErasureContext) -> RowChange:
        """The rows that dropping a user changes. Reads only."""
        return self.signals.forget(user, context)

    def observe_then_score(self, block: Events, candidates: Rows) -> Tensor:
        """The published order: the block is applied before it is scored."""
        self.observe(block)
        return self.score(Queries(block.users, block.times, Pending.none(len(block))), candidates)

    # Training

    def twin(self) -> FELRecS:
        """A model with the same weights, shared, and a state of its own."""
        other = type(self)(self.settings, device=self.device)
        other._modules, other._parameters = self._modules, self._parameters
        other.signals = other._new_signals()
        return other

    def batches(self, events: Events, settings: TrainingSettings, epoch: int) -> InTime:
        """Time order, never shuffled."""
        return InTime(events, settings.batch_size, settings.trained_share, (settings.seed, epoch))

    def begin_epoch(self) -> None:
        """Every epoch begins without events."""
        self.reset()

    def loss(self, step: TimeBatch) -> Tensor:
        """Softmax of what would have been served just before each event; then the batch is applied."""
        block, every = step.events, np.arange(self.signals.recent.items.owners, dtype=np.int32)
        catalogue = every[self.signals.recent.items.counts(every) > 0]
        chosen = self._learned_from(step, catalogue)
        loss = torch.stack([parameter.sum() * 0 for parameter in self.parameters()]).sum()  # if there are none
        if len(chosen) and len(catalogue) >= _ENOUGH_ITEMS:
            loss = loss + self._softmax_loss(Queries.before_each(block)[chosen], block[chosen], catalogue)
            if self.settings.item_loss and self.signals.vectors:
                compiled_by = self.peers if self.prunes else None
                user_loss = self.signals.vectors.user_loss(block, chosen, self._recent_users, compiled_by)
                loss = loss + self.settings.item_loss * user_loss
        self.observe(block)
        self._recent_users = np.concatenate([self._recent_users, block.users])[-_RECENT_USERS:]
        return loss

    def _learned_from(self, step: TimeBatch, catalogue: Rows) -> np.typing.NDArray[np.int64]:
        """The events of a batch to take a loss of: they count, are trained on, in the catalogue, and not too many.

        Those of new items are few. So that the loss sees them, all are learned from, and several times; fewer in a
        small catalogue, where a single event could bring an item into the best ten.
        """
        items = step.events.items
        times = np.ones(len(items)) if step.trained is None else step.trained.astype(np.float64)
        if self.signals.trend and self.settings.new_item_weight > 1:
            newness = self.signals.trend.newness(items)
            weight = 1 + (self.settings.new_item_weight - 1) * newness * min(1, len(catalogue) / _MANY_ITEMS)
            times = np.where(newness > 0, np.maximum(times, np.rint(weight * times.mean())), times)
        possible = step.events.counts & np.isin(items, catalogue)
        chosen = np.repeat(np.arange(len(items)), (times * possible).astype(np.int64))
        return chosen[: max(2, _CELLS // max(1, len(catalogue) * self.settings.members))]

    def _softmax_loss(self, queries: Queries, targets: Events, catalogue: Rows) -> Tensor:
        """The mean over queries, by the weights of their targets, and over members of the ensemble."""
        items = ItemScores.learning(catalogue, self.signals, self._item_network, self._lifts(catalogue))
        if targets.weights is None:
            return self._mean_loss(queries, targets.items, items)
        weights = np.where(np.isnan(targets.weights), 1, targets.weights)
        kinds = [np.flatnonzero(weights == weight) for weight in np.unique(weights)]  # there are few weights
        parts = [self._mean_loss(queries[of], targets.items[of], items) * float(weights[of].sum()) for of in kinds]
        return torch.stack(parts).sum() / float(weights.sum())

    def _lifts(self, catalogue: Rows) -> Tensor | None:
        """How much higher to learn the scores of new items; less in a small catalogue. None: not at all."""
        if not self.signals.trend or not self.settings.new_item_lift:
            return None
        most = self.settings.new_item_lift * min(1, len(catalogue) / _MANY_ITEMS)
        return torch.from_numpy(most * self.signals.trend.lifted(catalogue)).to(self.device)

    def _mean_loss(self, queries: Queries, targets: Rows, items: ItemScores) -> Tensor:
        """The mean over queries and members of the ensemble, by the compiled kernels if there are any."""
        catalogue = items.candidates.rows
        if self.prunes and len(catalogue) == self.signals.recent.items.owners:
            log_features = self._log_features()
            return CompiledLoss(self.signals, items, self.pair_network, log_features, self.peers)(queries, targets)
        columns = torch.from_numpy(np.searchsorted(catalogue, targets)).to(self.device)
        scores = self._learning_scores(queries, items)
        return torch.stack([F.cross_entropy(of_member, columns) for of_member in scores]).mean()

    def _learning_scores(self, queries: Queries, items: ItemScores) -> list[Tensor]:
        """Scores (B, C) of each member of the ensemble, with gradients."""
        match = self._match(queries, items, learning=True)
        pairs, gains = self._pair_scores(queries, items, match)
        totals = [match + of_items for of_items in items.scores.unbind(dim=1)]
        for total, of_pairs in zip(totals, gains.unbind(dim=1), strict=True):
            _add(total, pairs, of_pairs)
        return totals

    def memory(self) -> Tensors:
        """The users of recent events."""
        return {"recent_users": torch.from_numpy(self._recent_users)}

    def load_memory(self, memory: Tensors) -> None:
        """Restore what `memory` returned."""
        self._recent_users = memory["recent_users"].numpy()

    # State and weights

    def reset(self) -> None:
        """Forget all events."""
        self.signals.clear()
        self._recent_users = np.zeros(0, dtype=np.int32)
        self.version += 1

    def view(self) -> RowsByTable:
        """The rows of all signals, without a copy."""
        return self.signals.view()

    def state(self) -> Tensors:
        """A copy of the rows of all signals."""
        return self.signals.state()

    def load_state(self, state: Tensors) -> None:
        """Restore what `state` returned."""
        self.signals.load_state(state)
        self.version += 1

    def load_rows(self, rows: TableState) -> None:
        """Restore the rows of a state that were read from a store."""
        self.signals.load_rows(rows)
        self.version += 1

    def weights(self) -> Tensors:
        """All weights, by the names they have in files."""
        return {name_in_files(name): tensor for name, tensor in super().weights().items()}

    def load_weights(self, weights: Tensors) -> None:
        """Restore what `weights` returned."""
        if self.vector_network is None:  # a run of format 1 has these weights even if it does not use them
            weights = without_vectors(weights)
        names = {name_in_files(name): name for name in self.state_dict()}
        super().load_weights({names.get(name, name): tensor for name, tensor in weights.items()})
        self.version += 1


class FELRecSWithVectors(FELRecS):
    """FELRec-S with vectors to compare: counted by the signal `together`, or, without it, those of `vectors`."""

    def user_vectors(self, rows: Rows) -> Tensor:
        """Vectors (B, D) of users, unit length or zero."""
        return self._counted.of_users(rows) if self._counted else F.normalize(self._cached.users.read(rows), dim=1)

    def item_vectors(self, rows: Rows) -> Tensor:
        """Vectors (B, D) of items, unit length."""
        return self._counted.of_items(rows) if self._counted else F.normalize(self._cached.items.read(rows), dim=1)

    @property
    def _cached(self) -> Vectors:
        assert self.signals.vectors is not None, "build it by `felrec_s`"
        return self.signals.vectors


def felrec_s(settings: FELRecSSettings, seed: int = 0, device: torch.device | str = "cpu") -> FELRecS:
    """FELRec-S with the signals of its settings."""
    return (FELRecSWithVectors if {"together", "vectors"} & set(settings.signals) else FELRecS)(settings, seed, device)


def _add(scores: Tensor, found: PairFeatures, gains: Tensor) -> None:
    """Add the gain of each pair to its score."""
    at = torch.from_numpy(found.pairs.query), torch.from_numpy(found.pairs.column)
    scores.index_put_(at, gains.to(scores.dtype), accumulate=True)


FELREC_S = ModelKind(
    "felrec-s",
    "FELRec for logs of any size: counted signals (trend, repetition, co-occurrence, order)",
    FELRecSSettings,
    lambda settings, seed, device, sizes: felrec_s(settings, seed, device),
    {"epochs": 2, "batch_size": 256, "optimizer": "adamw", "lr": 0.01, "weight_decay": 0.01, "trained_share": 0.5},
    recipes={"sequence": SEQUENCE},
)
