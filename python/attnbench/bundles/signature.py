"""Signatures of bundles, by ssh-keygen: of the manifest, which names the SHA-256 of every other member. The keys are people's own ssh keys."""

from __future__ import annotations

import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from .archive import Bundle
from .container import BundleError, plain

NAMESPACE = "attnbench"  # so that a signature made for something else is none for this


@dataclass(frozen=True)
class Signature:
    """What a signature is worth.

    Attributes:
        state: "unsigned", "good" (by a key of the signers), "unknown" (right, by a key that nobody vouches for) or "unchecked".
        who: The principal of the signers' file, or the key's fingerprint, or why it was not checked.
    """

    state: str
    who: str = ""

    @property
    def words(self) -> str:
        """The state for people."""
        return {
            "unsigned": "not signed: nobody vouches for it",
            "good": f"signed by {self.who}",
            "unknown": f"signed by a key that nobody here vouches for: {self.who} (--signers FILE names keys to trust)",
            "unchecked": f"its signature was not checked: {self.who}",
        }[self.state]


def sign(manifest: bytes, key: Path) -> bytes:
    """The signature of the manifest, by ssh-keygen, which may ask for a passphrase. Raises BundleError with its words."""
    try:
        done = subprocess.run(["ssh-keygen", "-q", "-Y", "sign", "-n", NAMESPACE, "-f", str(key)], input=manifest, capture_output=True)
    except OSError as error:
        raise BundleError(f"ssh-keygen, which signs, cannot be started: {error.strerror}") from None
    if done.returncode or not done.stdout.startswith(b"-----BEGIN SSH SIGNATURE-----"):
        raise BundleError(f"{key}: ssh-keygen does not sign with it: {_last(done.stderr)}")
    return done.stdout


def check(bundle: Bundle, signers: Path | None) -> Signature:
    """Who signed the bundle. Raises BundleError for a signature that is not of this manifest, and, with `signers`, for a missing one or one by
    a key that the file does not name."""
    if not bundle.signature:
        if signers:
            raise BundleError(f"it is not signed, and --signers {signers} asks for a signature")
        return Signature("unsigned")
    with tempfile.TemporaryDirectory(prefix="attnbench-signature-") as folder:
        file = Path(folder) / "signature"
        file.write_text(bundle.signature, encoding="ascii", errors="replace")
        try:
            return _checked(bundle, file, signers)
        except OSError as error:
            if signers:
                raise BundleError(f"ssh-keygen, which checks signatures, cannot be started: {error.strerror}") from None
            return Signature("unchecked", f"ssh-keygen cannot be started: {error.strerror}")


def _checked(bundle: Bundle, file: Path, signers: Path | None) -> Signature:
    code, said = _keygen(bundle.signed, "check-novalidate", "-s", str(file))
    if code:
        raise BundleError(f"its signature is not of its manifest: {said}")
    key = next((word for word in said.split() if word.startswith("SHA256:")), "a key without a fingerprint")
    if signers is None:
        return Signature("unknown", key)
    code, who = _keygen(bundle.signed, "find-principals", "-s", str(file), "-f", str(signers))
    if code:
        raise BundleError(f"it is signed by {key}, which {signers} does not name: {who}")
    for principal in who.splitlines():
        code, _ = _keygen(bundle.signed, "verify", "-s", str(file), "-f", str(signers), "-I", principal)
        if not code:
            return Signature("good", f"{plain(principal)} ({key})")
    raise BundleError(f"it is signed by {key}, which {signers} does not let sign in the namespace {NAMESPACE}")


def _keygen(message: bytes, what: str, *words: str) -> tuple[int, str]:
    needs_name = () if what == "find-principals" else ("-n", NAMESPACE)
    done = subprocess.run(["ssh-keygen", "-Y", what, *needs_name, *words], input=message, capture_output=True, timeout=60)
    return done.returncode, plain_lines(done.stdout.decode("utf-8", "replace")) or _last(done.stderr)


def plain_lines(text: str) -> str:
    return "\n".join(plain(line) for line in text.strip().splitlines())


def _last(said: bytes) -> str:
    lines = said.decode("utf-8", "replace").strip().splitlines() or ["it said nothing"]
    return plain(lines[-1].strip())
