"""Non-maximum suppression inside the graph: what head it is for, the tail as a piece of its own, the graft, the proof."""
