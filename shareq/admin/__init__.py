"""Administration: topics, share groups, offsets, lag, configurations."""

from shareq.admin.admin import Admin
from shareq.admin.core import AdminCore
from shareq.admin.credentials import UserScramCredentialDeletion, UserScramCredentialUpsertion
from shareq.admin.results import Results
from shareq.admin.topics import NewTopic

__all__ = ["Admin", "AdminCore", "NewTopic", "Results", "UserScramCredentialDeletion", "UserScramCredentialUpsertion"]
