// The verbs that ask of a log what it leads to: invariants, state, fork, bisect, shrink, export, anonymise; and
// `upgrade`.
#pragma once

namespace CLI {
class App;
}

namespace wavetank::cli {

struct Outcome;

void AddInvariants(CLI::App& app, Outcome& outcome);
void AddLogs(CLI::App& app, Outcome& outcome);
void AddState(CLI::App& app, Outcome& outcome);
void AddFork(CLI::App& app, Outcome& outcome);
void AddBisect(CLI::App& app, Outcome& outcome);
void AddExport(CLI::App& app, Outcome& outcome);
void AddAnonymise(CLI::App& app, Outcome& outcome);
void AddShrink(CLI::App& app, Outcome& outcome);
void AddUpgrade(CLI::App& app, Outcome& outcome);

}  // namespace wavetank::cli
