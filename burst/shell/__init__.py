# SPDX-License-Identifier: MIT
"""Effects: the lead, the store, the providers' workers, the service, the tick."""
