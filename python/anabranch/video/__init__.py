"""Quality of real-time video: clips, their coding, what becomes of each frame, and how good the rest looks."""
