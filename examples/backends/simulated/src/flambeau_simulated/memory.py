"""The pool: memory of dead arrays serves later ones, without a word to the driver.

To ask the driver for memory is slow, and to give it back waits for the device. An array may die
while its stream still has work with it; whatever the same stream is asked next comes after that
work, so the memory may serve that at once. Other streams get it never, unless by the driver.
"""

from collections import defaultdict, deque

from flambeau.plugin import MemoryStatistics

STEP = 512


class Block:
    """Memory that arrays lie in; it ends when the last of them does.

    Attributes:
        users: streams that use it beside the one it was allocated on.
    """

    def __init__(self, pool, address, size, stream):
        self.pool, self.address, self.size, self.stream = pool, address, size, stream
        self.users = set()

    def __del__(self):
        # At any time, in any thread, with any lock taken: the next request does the rest.
        self.pool.ended.append((self.address, self.size, self.stream, self.users))


class Pool:
    """The memory of one device, or of the graphs that share it.

    Attributes:
        ended: what no array lies in any more, and who may still use it.
    """

    def __init__(self, driver, index, orphans):
        self.driver, self.index, self.ended = driver, index, deque()
        self._orphans, self._held = orphans, {}
        self._cached = defaultdict(list)
        self._waiting = {}  # by stream that uses what has ended, in the order of its marks
        self.allocated = self.reserved = self.hits = self.misses = 0
        self.peak = [0, 0]

    def __del__(self):
        self._orphans.extend(self._held.items())  # of a graph that is gone

    def allocate(self, size, stream):
        """A block for arrays that are made on a stream.

        Raises:
            MemoryError: the driver has none.
        """
        size = max(1, -(-size // STEP)) * STEP
        with self.driver.lock:
            self.settle()
            if found := self._cached[stream, size]:
                address, self.hits = found.pop(), self.hits + 1
            else:
                while self._orphans:
                    self.driver.free(*self._orphans.popleft())
                address, self.misses = self.driver.malloc(self.index, size), self.misses + 1
                self._held[address] = size
                self.reserved += size
            self.allocated += size
            self.peak = [max(self.peak[0], self.allocated), max(self.peak[1], self.reserved)]
            return Block(self, address, size, stream)

    def settle(self):
        """Let later arrays have what has ended, once nobody uses it any more."""
        while self.ended:
            address, size, stream, users = self.ended.popleft()
            self.allocated -= size
            ended = [len(users), address, size, stream]
            self._release(ended)
            for user in users:
                queue = self._waiting.setdefault(user, deque())
                queue.append((self.driver.mark(user), ended))
        # A stream reaches its marks in order: one that it has not reached is before all later ones.
        for user, queue in list(self._waiting.items()):
            while queue and queue[0][0].time is not None:
                ended = queue.popleft()[1]
                ended[0] -= 1
                self._release(ended)
            if not queue:
                del self._waiting[user]

    def _release(self, ended):
        left, address, size, stream = ended
        if not left:
            self._cached[stream, size].append(address)

    def empty(self):
        """Give what no array uses back to the driver."""
        with self.driver.lock:
            self.settle()
            for queue in self._waiting.values():
                self.driver.wait_mark(queue[-1][0])
            self.settle()
            for (_, size), addresses in self._cached.items():
                for address in addresses:
                    self.driver.free(address, size)
                    del self._held[address]
                    self.reserved -= size
            self._cached.clear()

    def statistics(self):
        """Its figures."""
        with self.driver.lock:
            self.settle()
            return MemoryStatistics(
                self.allocated,
                self.reserved,
                *self.peak,
                self.driver.memory,
                self.hits,
                self.misses,
            )
