"""The diskless coordinator (KIP-1164): orders batches and knows where their bytes are."""
