"""Code that is written for speed: chunked encoding, pools of dropout masks, work on several cores."""
