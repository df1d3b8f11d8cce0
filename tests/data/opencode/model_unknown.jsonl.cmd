{
 "cmd": [
  "/usr/local/bin/opencode",
  "run",
  "--format",
  "json",
  "--model=no/such-model"
 ],
 "stdin": "PLAIN",
 "cwd": "/home/user/project",
 "rc": 1,
 "first_line_s": 1.9,
 "total_s": 2.0
}