"""Errors of the lab's libvirt, subclasses of the lab's own errors."""

from lab.errors import LabError


class LibvirtError(LabError):
    """libvirtd or virsh refused, hung or died: the request, and its output."""

    def __init__(self, request: str, problem: str) -> None:
        self.request, self.problem = request, problem.strip()
        super().__init__(f"{request}: {self.problem}")
