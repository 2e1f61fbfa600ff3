"""What can go wrong with the lab's libvirt, below the lab's own errors."""

from lab.errors import LabError


class LibvirtError(LabError):
    """libvirtd or virsh refused, hung or died: what was asked, and what it said."""

    def __init__(self, request: str, problem: str) -> None:
        self.request, self.problem = request, problem.strip()
        super().__init__(f"{request}: {self.problem}")
