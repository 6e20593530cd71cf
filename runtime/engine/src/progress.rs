//! What a rank, or a thief for it, does to move its messages.
