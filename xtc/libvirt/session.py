"""The loop's view of one connection: what is known, ordered, and given up."""

from collections.abc import Callable, Mapping
from itertools import count
from typing import Final

import structlog

from common.clock import Clock
from common.units import Seconds
from xtc.errors import Unsupported
from xtc.libvirt.api import Api
from xtc.libvirt.budget import Budget
from xtc.libvirt.domains import DomainView, HostView, Order, Outcome
from xtc.libvirt.mailbox import Mailbox
from xtc.libvirt.pool import Pool

CALL_DEADLINE_S: Final = Seconds(15.0)
"""After this, a call and its thread are given up: keepalive should have failed it long before.

A hung call on a domain costs that domain only; one on the connection costs the whole pool.
"""
RELEASE_PATIENCE_S: Final = Seconds(0.3)
"""How long a hypervisor's releases may block the loop in a period."""
MAX_GIVEN_UP: Final = 3
"""Maximum pools blocked with their connection; at that number, no new ones are started."""
SETTLE_STEP_S: Final = Seconds(1.0)
"""How often threads are supervised while nothing else does so."""
STALE_S: Final = Seconds(1.5)
"""A domain that has not answered for longer counts as unknown."""

log = structlog.get_logger()


class Session:
    """The loop's end of one connection. No method waits unless documented."""

    def __init__(
        self,
        load: Callable[[], Api],
        uri: str | None,
        clock: Clock,
        patience: Seconds = RELEASE_PATIENCE_S,
    ) -> None:
        self._load, self._clock = load, clock
        self.patience = Budget(clock, patience)
        """The loop's time budget for this hypervisor's releases in one period."""
        self.uri = uri
        self._mailbox = Mailbox(clock)
        self._numbers = count(1)
        self._pool: Pool | None = None
        self._given_up: list[Pool] = []
        self.given_up = 0
        """Number of calls that were given up, for metrics."""

    @property
    def view(self) -> HostView:
        """What is known of the host."""
        return self._mailbox.view

    @property
    def version(self) -> int:
        """Changes when domains or their interfaces come or go."""
        return self._mailbox.version

    def start(self) -> None:
        """Begin to connect; on a host without libvirt-python, the connection never succeeds."""
        try:
            api = self._load()
        except Unsupported as problem:
            self._mailbox.employ(self)
            self._mailbox.unreachable(self, problem)
            return
        self._pool = Pool(api, self.uri, self._mailbox, self._clock)
        self._mailbox.employ(self._pool)
        self._pool.begin()

    @property
    def answer_time(self) -> Seconds:
        """How long before a tick to poll, so that the answer is available and fresh."""
        return self._mailbox.answer_time

    def want(self, wanted: Callable[[DomainView], bool]) -> None:
        """Set which domains are followed."""
        self._mailbox.want(wanted)

    def ask(self) -> None:
        """Poll the wanted domains for the next tick."""
        self._mailbox.ask()

    def in_doubt(self, uuid: str) -> bool:
        """Whether an abandoned order of a domain has not returned: it may still take effect."""
        return self._mailbox.in_doubt(uuid)

    def supervise(self) -> None:
        """Give up calls beyond their deadline, and replace the threads that they block."""
        self._given_up = [pool for pool in self._given_up if pool.working]
        if self._pool is None:
            return
        for name in self._mailbox.give_up(CALL_DEADLINE_S):
            log.warning("libvirt_domain_hangs", uri=self.uri, domain=name)
            self.given_up += 1
        if self._mailbox.longest() < CALL_DEADLINE_S:
            self._pool.reinforce()
        elif len(self._given_up) < MAX_GIVEN_UP:
            self._replace(self._pool)

    def _replace(self, pool: Pool) -> None:
        log.warning("libvirt_hangs", uri=self.uri, given_up=len(self._given_up) + 1)
        self._given_up.append(pool)
        self.given_up += 1
        self.start()

    def new_capture(self) -> int:
        """Return a number for the capture of a domain's originals."""
        return next(self._numbers)

    def order(
        self,
        view: DomainView,
        parameters: Mapping[str, int],
        flags: int,
        *,
        mark: Mapping[str, int] | None,
        expected: Mapping[str, int] | None = None,
        capture: int = 0,
    ) -> Order:
        """Order parameters for a run of a domain, replacing an order not begun."""
        number, values = next(self._numbers), dict(parameters)
        order = Order(number, view.uuid, view.domid, values, flags, mark, expected, capture)
        self._mailbox.post(order)
        return order

    def pending(self, uuid: str) -> Order | None:
        """Return a domain's order that is not carried out yet."""
        return self._mailbox.pending(uuid)

    def outcome(self, uuid: str) -> Outcome | None:
        """Return the outcome of the last completed order."""
        return self._mailbox.outcome(uuid)

    def is_stale(self, uuid: str) -> bool:
        """Whether a domain has not answered for too long."""
        return self._mailbox.unanswered(uuid) > STALE_S

    def wait_for(self, order: Order) -> Outcome | None:
        """Wait for the outcome of an order; None if that exceeds the remaining budget."""
        self.patience.spend(
            lambda most: self._mailbox.wait_until(lambda: self._ended(order) is not None, most)
        )
        return self._ended(order)

    def _ended(self, order: Order) -> Outcome | None:
        outcome = self._mailbox.outcome(order.uuid)
        return outcome if outcome is not None and outcome.order.number >= order.number else None

    def settle(self, patience: Seconds) -> bool:
        """Wait until every wanted domain is known, or failed; return whether that happened.

        Blocked threads are replaced during the wait, since no period begins in it.
        """
        left = patience
        while not self._mailbox.wait_until(self._settled, Seconds(min(left, SETTLE_STEP_S))):
            left = Seconds(left - SETTLE_STEP_S)
            if left <= 0:
                return False
            self.supervise()
        return True

    def _settled(self) -> bool:
        view = self.view
        if view.problem is not None:
            return True
        return view.surveyed and not self._mailbox.to_describe()

    def close(self) -> None:
        """Accept no pool: threads exit when their calls return."""
        self._mailbox.employ(None)
