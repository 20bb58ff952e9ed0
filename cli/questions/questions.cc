#include "cli/questions/questions.h"

#include "cli/verb.h"

namespace wavetank::cli {

void AddQuestions(CLI::App& app, Outcome& outcome) {
  AddInvariants(app, outcome);
  AddState(app, outcome);
  AddFork(app, outcome);
  AddBisect(app, outcome);
  AddExport(app, outcome);
  AddShrink(app, outcome);
  AddAnonymise(app, outcome);
  AddLogs(app, outcome);
  AddUpgrade(app, outcome);
}

}  // namespace wavetank::cli
