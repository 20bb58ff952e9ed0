// The parts of a scenario, each of one mapping. Mistakes are recorded with the document.
#pragma once

#include "scenarios/language/scenario.h"
#include "scenarios/language/yaml_reader.h"

namespace wavetank::scenario {

ClusterSpec ReadCluster(const Field& f);
LinkSpec ReadLink(const Field& f, const Scenario& scenario);
// Of clusters that are known. What does not fit them is told with its place.
PhysicalSpec ReadPhysical(const Field& f, const Scenario& scenario);
FlowSpec ReadFlow(const Field& f, const Scenario& scenario);
Traffic ReadTraffic(const Field& f, const Scenario& scenario);
Expectation ReadExpectation(const Field& f, const Scenario& scenario);
Incident ReadIncident(const Field& f);
Step ReadStep(const Field& f, const Scenario& scenario);
// Of flows that are known.
Step ReadThroughout(const Field& f, const Scenario& scenario);

}  // namespace wavetank::scenario
