// The checkers, one for each row of the catalogue.
#pragma once

#include <memory>

#include "sim/invariants/invariant.h"

namespace wavetank::sim {

std::unique_ptr<Checker> MakeForeignAddresses();
std::unique_ptr<Checker> MakeReplicas();
std::unique_ptr<Checker> MakeTrueEndpoints();
std::unique_ptr<Checker> MakeAddressesTwice();
std::unique_ptr<Checker> MakeLoadShares();
std::unique_ptr<Checker> MakeSniClosure();
std::unique_ptr<Checker> MakeHandshakes();
std::unique_ptr<Checker> MakeRemovals();
std::unique_ptr<Checker> MakeRestarts();
std::unique_ptr<Checker> MakeCacheTwins();
std::unique_ptr<Checker> MakeDeltaTwins();
std::unique_ptr<Checker> MakeMergeTwins();
std::unique_ptr<Checker> MakeTrueGateways();
std::unique_ptr<Checker> MakeWarming();
std::unique_ptr<Checker> MakeRotation();
std::unique_ptr<Checker> MakeBlackouts();
std::unique_ptr<Checker> MakeStaleEndpoints();
std::unique_ptr<Checker> MakeGatewayHops();
std::unique_ptr<Checker> MakeConnections();
std::unique_ptr<Checker> MakeNackIsolation();

}  // namespace wavetank::sim
