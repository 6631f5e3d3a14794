//! The named error codes. Generated from `codes.csv` by `cargo xtask codes`; edit the table, not this file.

use crate::{ErrorClass, ErrorCode};

/// Number, name and classes of every named code, by rising number.
#[rustfmt::skip]
pub(crate) static NAMES: &[(i32, &str, &[ErrorClass])] = &[
    (1, "InternalError", &[]),
    (2, "BadValue", &[]),
    (4, "NoSuchKey", &[]),
    (5, "GraphContainsCycle", &[]),
    (6, "HostUnreachable", &[ErrorClass::NetworkError, ErrorClass::RetriableError]),
    (7, "HostNotFound", &[ErrorClass::NetworkError, ErrorClass::RetriableError]),
    (8, "UnknownError", &[]),
    (9, "FailedToParse", &[]),
    (10, "CannotMutateObject", &[]),
    (11, "UserNotFound", &[]),
    (12, "UnsupportedFormat", &[]),
    (13, "Unauthorized", &[]),
    (14, "TypeMismatch", &[]),
    (15, "Overflow", &[ErrorClass::ValidationError]),
    (16, "InvalidLength", &[]),
    (17, "ProtocolError", &[]),
    (18, "AuthenticationFailed", &[]),
    (19, "CannotReuseObject", &[]),
    (20, "IllegalOperation", &[]),
    (21, "EmptyArrayOperation", &[]),
    (22, "InvalidBSON", &[ErrorClass::ValidationError]),
    (23, "AlreadyInitialized", &[]),
    (24, "LockTimeout", &[ErrorClass::Interruption]),
    (25, "RemoteValidationError", &[]),
    (26, "NamespaceNotFound", &[]),
    (27, "IndexNotFound", &[]),
    (28, "PathNotViable", &[]),
    (29, "NonExistentPath", &[]),
    (30, "InvalidPath", &[]),
    (31, "RoleNotFound", &[]),
    (32, "RolesNotRelated", &[]),
    (33, "PrivilegeNotFound", &[]),
    (34, "CannotBackfillArray", &[]),
    (35, "UserModificationFailed", &[]),
    (36, "RemoteChangeDetected", &[]),
    (37, "FileRenameFailed", &[]),
    (38, "FileNotOpen", &[]),
    (39, "FileStreamFailed", &[]),
    (40, "ConflictingUpdateOperators", &[]),
    (41, "FileAlreadyOpen", &[]),
    (42, "LogWriteFailed", &[]),
    (43, "CursorNotFound", &[ErrorClass::CursorInvalidatedError]),
    (45, "UserDataInconsistent", &[]),
    (46, "LockBusy", &[]),
    (47, "NoMatchingDocument", &[]),
    (48, "NamespaceExists", &[]),
    (49, "InvalidRoleModification", &[]),
    (50, "MaxTimeMSExpired", &[ErrorClass::Interruption, ErrorClass::ExceededTimeLimitError]),
    (51, "ManualInterventionRequired", &[]),
    (52, "DollarPrefixedFieldName", &[]),
    (53, "InvalidIdField", &[]),
    (54, "NotSingleValueField", &[]),
    (55, "InvalidDBRef", &[]),
    (56, "EmptyFieldName", &[]),
    (57, "DottedFieldName", &[]),
    (58, "RoleModificationFailed", &[]),
    (59, "CommandNotFound", &[]),
    (61, "ShardKeyNotFound", &[]),
    (62, "OplogOperationUnsupported", &[]),
    (64, "WriteConcernTimeout", &[ErrorClass::WriteConcernError]),
    (65, "MultipleErrorsOccurred", &[]),
    (66, "ImmutableField", &[]),
    (67, "CannotCreateIndex", &[]),
    (68, "IndexAlreadyExists", &[]),
    (69, "AuthSchemaIncompatible", &[]),
    (70, "ShardNotFound", &[]),
    (71, "ReplicaSetNotFound", &[]),
    (72, "InvalidOptions", &[]),
    (73, "InvalidNamespace", &[]),
    (74, "NodeNotFound", &[]),
    (75, "WriteConcernLegacyOK", &[ErrorClass::WriteConcernError]),
    (76, "NoReplicationEnabled", &[]),
    (77, "OperationIncomplete", &[]),
    (78, "CommandResultSchemaViolation", &[]),
    (79, "UnknownReplWriteConcern", &[ErrorClass::WriteConcernError]),
    (80, "RoleDataInconsistent", &[]),
    (81, "NoMatchParseContext", &[]),
    (82, "NoProgressMade", &[]),
    (83, "RemoteResultsUnavailable", &[]),
    (85, "IndexOptionsConflict", &[]),
    (86, "IndexKeySpecsConflict", &[]),
    (87, "CannotSplit", &[]),
    (89, "NetworkTimeout", &[ErrorClass::NetworkError, ErrorClass::RetriableError]),
    (90, "CallbackCanceled", &[]),
    (91, "ShutdownInProgress", &[ErrorClass::ShutdownError, ErrorClass::RetriableError]),
    (92, "SecondaryAheadOfPrimary", &[]),
    (93, "InvalidReplicaSetConfig", &[]),
    (94, "NotYetInitialized", &[]),
    (95, "NotSecondary", &[]),
    (96, "OperationFailed", &[ErrorClass::CursorInvalidatedError]),
    (97, "NoProjectionFound", &[]),
    (98, "DBPathInUse", &[]),
    (100, "UnsatisfiableWriteConcern", &[ErrorClass::WriteConcernError]),
    (101, "OutdatedClient", &[]),
    (102, "IncompatibleAuditMetadata", &[]),
    (103, "NewReplicaSetConfigurationIncompatible", &[]),
    (104, "NodeNotElectable", &[]),
    (105, "IncompatibleShardingMetadata", &[]),
    (106, "DistributedClockSkewed", &[]),
    (107, "LockFailed", &[]),
    (108, "InconsistentReplicaSetNames", &[]),
    (109, "ConfigurationInProgress", &[]),
    (110, "CannotInitializeNodeWithData", &[]),
    (111, "NotExactValueField", &[]),
    (112, "WriteConflict", &[]),
    (113, "InitialSyncFailure", &[]),
    (114, "InitialSyncOplogSourceMissing", &[]),
    (115, "CommandNotSupported", &[]),
    (116, "DocTooLargeForCapped", &[]),
    (117, "ConflictingOperationInProgress", &[]),
    (118, "NamespaceNotSharded", &[]),
    (119, "InvalidSyncSource", &[]),
    (120, "OplogStartMissing", &[]),
    (121, "DocumentValidationFailure", &[]),
    (123, "NotAReplicaSet", &[]),
    (124, "IncompatibleElectionProtocol", &[]),
    (125, "CommandFailed", &[]),
    (126, "RPCProtocolNegotiationFailed", &[]),
    (127, "UnrecoverableRollbackError", &[]),
    (128, "LockNotFound", &[]),
    (129, "LockStateChangeFailed", &[]),
    (130, "SymbolNotFound", &[]),
    (133, "FailedToSatisfyReadPreference", &[]),
    (134, "ReadConcernMajorityNotAvailableYet", &[ErrorClass::RetriableError]),
    (135, "StaleTerm", &[]),
    (136, "CappedPositionLost", &[]),
    (137, "IncompatibleShardingConfigVersion", &[]),
    (138, "RemoteOplogStale", &[]),
    (139, "JSInterpreterFailure", &[]),
    (140, "InvalidSSLConfiguration", &[]),
    (141, "SSLHandshakeFailed", &[]),
    (142, "JSUncatchableError", &[]),
    (143, "CursorInUse", &[]),
    (144, "IncompatibleCatalogManager", &[]),
    (145, "PooledConnectionsDropped", &[]),
    (146, "ExceededMemoryLimit", &[]),
    (147, "ZLibError", &[]),
    (148, "ReadConcernMajorityNotEnabled", &[]),
    (149, "NoConfigPrimary", &[]),
    (150, "StaleEpoch", &[]),
    (151, "OperationCannotBeBatched", &[]),
    (152, "OplogOutOfOrder", &[]),
    (153, "ChunkTooBig", &[]),
    (154, "InconsistentShardIdentity", &[]),
    (155, "CannotApplyOplogWhilePrimary", &[]),
    (157, "CanRepairToDowngrade", &[]),
    (158, "MustUpgrade", &[]),
    (159, "DurationOverflow", &[]),
    (160, "MaxStalenessOutOfRange", &[]),
    (161, "IncompatibleCollationVersion", &[]),
    (162, "CollectionIsEmpty", &[]),
    (163, "ZoneStillInUse", &[]),
    (164, "InitialSyncActive", &[]),
    (165, "ViewDepthLimitExceeded", &[]),
    (166, "CommandNotSupportedOnView", &[]),
    (167, "OptionNotSupportedOnView", &[]),
    (168, "InvalidPipelineOperator", &[]),
    (169, "CommandOnShardedViewNotSupportedOnMongod", &[]),
    (170, "TooManyMatchingDocuments", &[]),
    (171, "CannotIndexParallelArrays", &[]),
    (172, "TransportSessionClosed", &[]),
    (173, "TransportSessionNotFound", &[]),
    (174, "TransportSessionUnknown", &[]),
    (175, "QueryPlanKilled", &[ErrorClass::CursorInvalidatedError]),
    (176, "FileOpenFailed", &[]),
    (177, "ZoneNotFound", &[]),
    (178, "RangeOverlapConflict", &[]),
    (179, "WindowsPdhError", &[]),
    (180, "BadPerfCounterPath", &[]),
    (181, "AmbiguousIndexKeyPattern", &[]),
    (182, "InvalidViewDefinition", &[]),
    (183, "ClientMetadataMissingField", &[]),
    (184, "ClientMetadataAppNameTooLarge", &[]),
    (185, "ClientMetadataDocumentTooLarge", &[]),
    (186, "ClientMetadataCannotBeMutated", &[]),
    (187, "LinearizableReadConcernError", &[]),
    (188, "IncompatibleServerVersion", &[]),
    (189, "PrimarySteppedDown", &[ErrorClass::NotPrimaryError, ErrorClass::RetriableError]),
    (190, "MasterSlaveConnectionFailure", &[]),
    (192, "FailPointEnabled", &[]),
    (194, "BalancerInterrupted", &[]),
    (195, "ViewPipelineMaxSizeExceeded", &[]),
    (197, "InvalidIndexSpecificationOption", &[]),
    (199, "ReplicaSetMonitorRemoved", &[]),
    (200, "ChunkRangeCleanupPending", &[]),
    (201, "CannotBuildIndexKeys", &[]),
    (202, "NetworkInterfaceExceededTimeLimit", &[ErrorClass::ExceededTimeLimitError]),
    (203, "ShardingStateNotInitialized", &[]),
    (204, "TimeProofMismatch", &[]),
    (205, "ClusterTimeFailsRateLimiter", &[]),
    (206, "NoSuchSession", &[]),
    (207, "InvalidUUID", &[]),
    (208, "TooManyLocks", &[]),
    (209, "StaleClusterTime", &[]),
    (210, "CannotVerifyAndSignLogicalTime", &[]),
    (211, "KeyNotFound", &[]),
    (212, "IncompatibleRollbackAlgorithm", &[]),
    (213, "DuplicateSession", &[]),
    (214, "AuthenticationRestrictionUnmet", &[]),
    (215, "DatabaseDropPending", &[]),
    (216, "ElectionInProgress", &[]),
    (217, "IncompleteTransactionHistory", &[]),
    (218, "UpdateOperationFailed", &[]),
    (219, "FTDCPathNotSet", &[]),
    (220, "FTDCPathAlreadySet", &[]),
    (221, "IndexModified", &[]),
    (222, "CloseChangeStream", &[]),
    (223, "IllegalOpMsgFlag", &[]),
    (224, "QueryFeatureNotAllowed", &[]),
    (225, "TransactionTooOld", &[]),
    (226, "AtomicityFailure", &[]),
    (227, "CannotImplicitlyCreateCollection", &[]),
    (228, "SessionTransferIncomplete", &[]),
    (229, "MustDowngrade", &[]),
    (230, "DNSHostNotFound", &[]),
    (231, "DNSProtocolError", &[]),
    (232, "MaxSubPipelineDepthExceeded", &[]),
    (233, "TooManyDocumentSequences", &[]),
    (234, "RetryChangeStream", &[]),
    (235, "InternalErrorNotSupported", &[]),
    (237, "CursorKilled", &[ErrorClass::Interruption, ErrorClass::CursorInvalidatedError]),
    (238, "NotImplemented", &[]),
    (239, "SnapshotTooOld", &[]),
    (240, "DNSRecordTypeMismatch", &[]),
    (241, "ConversionFailure", &[]),
    (242, "CannotCreateCollection", &[]),
    (243, "IncompatibleWithUpgradedServer", &[]),
    (245, "BrokenPromise", &[]),
    (246, "SnapshotUnavailable", &[]),
    (247, "ProducerConsumerQueueBatchTooLarge", &[]),
    (248, "ProducerConsumerQueueEndClosed", &[]),
    (249, "StaleDbVersion", &[]),
    (250, "StaleChunkHistory", &[]),
    (251, "NoSuchTransaction", &[]),
    (252, "ReentrancyNotAllowed", &[]),
    (256, "TransactionCommitted", &[]),
    (257, "TransactionTooLarge", &[]),
    (258, "UnknownFeatureCompatibilityVersion", &[]),
    (259, "KeyedExecutorRetry", &[]),
    (260, "InvalidResumeToken", &[]),
    (261, "TooManyLogicalSessions", &[]),
    (262, "ExceededTimeLimit", &[ErrorClass::Interruption, ErrorClass::ExceededTimeLimitError, ErrorClass::RetriableError]),
    (263, "OperationNotSupportedInTransaction", &[]),
    (264, "TooManyFilesOpen", &[]),
    (265, "OrphanedRangeCleanUpFailed", &[]),
    (266, "FailPointSetFailed", &[]),
    (267, "PreparedTransactionInProgress", &[]),
    (268, "CannotBackup", &[]),
    (269, "DataModifiedByRepair", &[]),
    (270, "RepairedReplicaSetNode", &[]),
    (271, "JSInterpreterFailureWithStack", &[]),
    (272, "MigrationConflict", &[]),
    (273, "ProducerConsumerQueueProducerQueueDepthExceeded", &[]),
    (274, "ProducerConsumerQueueConsumed", &[]),
    (275, "ExchangePassthrough", &[]),
    (276, "IndexBuildAborted", &[]),
    (277, "AlarmAlreadyFulfilled", &[]),
    (278, "UnsatisfiableCommitQuorum", &[]),
    (279, "ClientDisconnect", &[ErrorClass::Interruption]),
    (280, "ChangeStreamFatalError", &[]),
    (281, "TransactionCoordinatorSteppingDown", &[ErrorClass::Interruption]),
    (282, "TransactionCoordinatorReachedAbortDecision", &[ErrorClass::Interruption]),
    (283, "WouldChangeOwningShard", &[]),
    (285, "IndexBuildAlreadyInProgress", &[]),
    (286, "ChangeStreamHistoryLost", &[]),
    (288, "ChecksumMismatch", &[]),
    (290, "TransactionExceededLifetimeLimitSeconds", &[ErrorClass::Interruption, ErrorClass::ExceededTimeLimitError]),
    (291, "NoQueryExecutionPlans", &[]),
    (292, "QueryExceededMemoryLimitNoDiskUseAllowed", &[]),
    (293, "InvalidSeedList", &[]),
    (294, "InvalidTopologyType", &[]),
    (295, "InvalidHeartBeatFrequency", &[]),
    (296, "TopologySetNameRequired", &[]),
    (297, "HierarchicalAcquisitionLevelViolation", &[]),
    (298, "InvalidServerType", &[]),
    (299, "OCSPCertificateStatusRevoked", &[]),
    (300, "RangeDeletionAbandonedBecauseCollectionWithUUIDDoesNotExist", &[]),
    (301, "DataCorruptionDetected", &[]),
    (302, "OCSPCertificateStatusUnknown", &[]),
    (303, "SplitHorizonChange", &[]),
    (307, "RangeDeletionAbandonedBecauseTaskDocumentDoesNotExist", &[]),
    (308, "CurrentConfigNotCommittedYet", &[]),
    (309, "ExhaustCommandFinished", &[]),
    (310, "PeriodicJobIsStopped", &[]),
    (313, "ResumableRangeDeleterDisabled", &[]),
    (314, "ObjectIsBusy", &[ErrorClass::CursorInvalidatedError]),
    (319, "MovePrimaryInProgress", &[]),
    (322, "APIVersionError", &[]),
    (323, "APIStrictError", &[]),
    (324, "APIDeprecationError", &[]),
    (326, "OplogQueryMinTsMissing", &[]),
    (330, "SkipCommandExecution", &[]),
    (331, "FailedToRunWithReplyBuilder", &[]),
    (332, "CannotDowngrade", &[]),
    (334, "MechanismUnavailable", &[]),
    (338, "ReshardCollectionInProgress", &[]),
    (339, "NoSuchReshardCollection", &[]),
    (340, "ReshardCollectionCommitted", &[]),
    (341, "ReshardCollectionAborted", &[]),
    (342, "ReshardingCriticalSectionTimeout", &[]),
    (344, "AuditingNotEnabled", &[]),
    (345, "RuntimeAuditConfigurationNotEnabled", &[]),
    (346, "ChangeStreamInvalidated", &[]),
    (347, "APIMismatchError", &[]),
    (348, "ChangeStreamTopologyChange", &[]),
    (349, "KeyPatternShorterThanBound", &[]),
    (350, "ReshardCollectionTruncatedError", &[]),
    (351, "ChangeStreamStartAfterInvalidate", &[]),
    (352, "UnsupportedOpQueryCommand", &[]),
    (354, "LoadBalancerSupportMismatch", &[]),
    (355, "InterruptedDueToStorageChange", &[ErrorClass::Interruption]),
    (356, "TxnRetryCounterTooOld", &[]),
    (357, "InvalidBSONType", &[]),
    (358, "InternalTransactionNotSupported", &[ErrorClass::RetriableError]),
    (359, "CannotConvertIndexToUnique", &[]),
    (361, "CollectionUUIDMismatch", &[]),
    (362, "FutureAlreadyRetrieved", &[]),
    (363, "RetryableTransactionInProgress", &[]),
    (365, "TemporarilyUnavailable", &[]),
    (366, "WouldChangeOwningShardDeletedNoDocument", &[]),
    (369, "FLETransactionAbort", &[]),
    (370, "CannotDropShardKeyIndex", &[]),
    (371, "UserWritesBlocked", &[]),
    (373, "InternalTransactionsExhaustiveFindHasMore", &[]),
    (376, "ChangeStreamNotEnabled", &[]),
    (377, "FLEMaxTagLimitExceeded", &[]),
    (378, "NonConformantBSON", &[ErrorClass::ValidationError]),
    (380, "RequestAlreadyFulfilled", &[]),
    (383, "CollectionIsEmptyLocally", &[]),
    (385, "ConflictingServerlessOperation", &[]),
    (386, "DuplicateKeyId", &[]),
    (388, "TransactionTooLargeForCache", &[]),
    (389, "LibmongocryptError", &[]),
    (390, "InvalidSignature", &[]),
    (391, "ReauthenticationRequired", &[]),
    (392, "InvalidJWT", &[]),
    (393, "InvalidTenantId", &[]),
    (395, "TruncatedSerialization", &[]),
    (396, "IndexInformationTooLarge", &[]),
    (398, "StreamTerminated", &[]),
    (400, "CannotUpgrade", &[]),
    (402, "ResourceExhausted", &[ErrorClass::RetriableError]),
    (404, "LDAPRoleAcquisitionError", &[]),
    (405, "CannotCreateChunkDistribution", &[]),
    (408, "CannotInsertTimeseriesBucketsWithMixedSchema", &[]),
    (409, "TimeseriesBucketCompressionFailed", &[]),
    (411, "QueryRejectedBySettings", &[]),
    (412, "UpdatesStillPending", &[ErrorClass::RetriableError]),
    (426, "IndexIsEmpty", &[]),
    (430, "IndexKeyOrderViolation", &[]),
    (432, "OfflineValidationFailedToComplete", &[]),
    (433, "AdmissionQueueOverflow", &[]),
    (434, "NoDistinctScansForDistinctEligibleQuery", &[]),
    (442, "RetryMultiPlanning", &[]),
    (449, "RateLimitExceeded", &[]),
    (462, "IngressRequestRateLimitExceeded", &[ErrorClass::RetriableError]),
    (9001, "SocketException", &[ErrorClass::NetworkError, ErrorClass::RetriableError]),
    (10003, "CannotGrowDocumentInCappedNamespace", &[]),
    (10058, "LegacyNotPrimary", &[]),
    (10107, "NotWritablePrimary", &[ErrorClass::NotPrimaryError, ErrorClass::RetriableError]),
    (10334, "BSONObjectTooLarge", &[]),
    (11000, "DuplicateKey", &[]),
    (11600, "InterruptedAtShutdown", &[ErrorClass::Interruption, ErrorClass::ShutdownError, ErrorClass::RetriableError]),
    (11601, "Interrupted", &[ErrorClass::Interruption]),
    (11602, "InterruptedDueToReplStateChange", &[ErrorClass::Interruption, ErrorClass::NotPrimaryError, ErrorClass::RetriableError]),
    (12586, "BackgroundOperationInProgressForDatabase", &[]),
    (12587, "BackgroundOperationInProgressForNamespace", &[]),
    (13113, "MergeStageNoMatchingDocument", &[]),
    (13297, "DatabaseDifferCase", &[]),
    (13388, "StaleConfig", &[]),
    (13435, "NotPrimaryNoSecondaryOk", &[ErrorClass::NotPrimaryError, ErrorClass::RetriableError]),
    (13436, "NotPrimaryOrSecondary", &[ErrorClass::NotPrimaryError, ErrorClass::RetriableError]),
    (14031, "OutOfDiskSpace", &[]),
    (28769, "NamespaceCannotBeSharded", &[]),
    (31082, "SearchNotEnabled", &[]),
    (40413, "IDLDuplicateField", &[]),
    (40414, "IDLFailedToParse", &[]),
    (40415, "IDLUnknownField", &[]),
    (46841, "ClientMarkedKilled", &[ErrorClass::Interruption]),
    (50768, "NotARetryableWriteCommand", &[]),
];

#[allow(non_upper_case_globals)]
#[rustfmt::skip]
impl ErrorCode {
    /// MongoDB's code 1, InternalError.
    pub const InternalError: ErrorCode = ErrorCode(1);
    /// MongoDB's code 2, BadValue.
    pub const BadValue: ErrorCode = ErrorCode(2);
    /// MongoDB's code 4, NoSuchKey.
    pub const NoSuchKey: ErrorCode = ErrorCode(4);
    /// MongoDB's code 5, GraphContainsCycle.
    pub const GraphContainsCycle: ErrorCode = ErrorCode(5);
    /// MongoDB's code 6, HostUnreachable.
    pub const HostUnreachable: ErrorCode = ErrorCode(6);
    /// MongoDB's code 7, HostNotFound.
    pub const HostNotFound: ErrorCode = ErrorCode(7);
    /// MongoDB's code 8, UnknownError.
    pub const UnknownError: ErrorCode = ErrorCode(8);
    /// MongoDB's code 9, FailedToParse.
    pub const FailedToParse: ErrorCode = ErrorCode(9);
    /// MongoDB's code 10, CannotMutateObject.
    pub const CannotMutateObject: ErrorCode = ErrorCode(10);
    /// MongoDB's code 11, UserNotFound.
    pub const UserNotFound: ErrorCode = ErrorCode(11);
    /// MongoDB's code 12, UnsupportedFormat.
    pub const UnsupportedFormat: ErrorCode = ErrorCode(12);
    /// MongoDB's code 13, Unauthorized.
    pub const Unauthorized: ErrorCode = ErrorCode(13);
    /// MongoDB's code 14, TypeMismatch.
    pub const TypeMismatch: ErrorCode = ErrorCode(14);
    /// MongoDB's code 15, Overflow.
    pub const Overflow: ErrorCode = ErrorCode(15);
    /// MongoDB's code 16, InvalidLength.
    pub const InvalidLength: ErrorCode = ErrorCode(16);
    /// MongoDB's code 17, ProtocolError.
    pub const ProtocolError: ErrorCode = ErrorCode(17);
    /// MongoDB's code 18, AuthenticationFailed.
    pub const AuthenticationFailed: ErrorCode = ErrorCode(18);
    /// MongoDB's code 19, CannotReuseObject.
    pub const CannotReuseObject: ErrorCode = ErrorCode(19);
    /// MongoDB's code 20, IllegalOperation.
    pub const IllegalOperation: ErrorCode = ErrorCode(20);
    /// MongoDB's code 21, EmptyArrayOperation.
    pub const EmptyArrayOperation: ErrorCode = ErrorCode(21);
    /// MongoDB's code 22, InvalidBSON.
    pub const InvalidBSON: ErrorCode = ErrorCode(22);
    /// MongoDB's code 23, AlreadyInitialized.
    pub const AlreadyInitialized: ErrorCode = ErrorCode(23);
    /// MongoDB's code 24, LockTimeout.
    pub const LockTimeout: ErrorCode = ErrorCode(24);
    /// MongoDB's code 25, RemoteValidationError.
    pub const RemoteValidationError: ErrorCode = ErrorCode(25);
    /// MongoDB's code 26, NamespaceNotFound.
    pub const NamespaceNotFound: ErrorCode = ErrorCode(26);
    /// MongoDB's code 27, IndexNotFound.
    pub const IndexNotFound: ErrorCode = ErrorCode(27);
    /// MongoDB's code 28, PathNotViable.
    pub const PathNotViable: ErrorCode = ErrorCode(28);
    /// MongoDB's code 29, NonExistentPath.
    pub const NonExistentPath: ErrorCode = ErrorCode(29);
    /// MongoDB's code 30, InvalidPath.
    pub const InvalidPath: ErrorCode = ErrorCode(30);
    /// MongoDB's code 31, RoleNotFound.
    pub const RoleNotFound: ErrorCode = ErrorCode(31);
    /// MongoDB's code 32, RolesNotRelated.
    pub const RolesNotRelated: ErrorCode = ErrorCode(32);
    /// MongoDB's code 33, PrivilegeNotFound.
    pub const PrivilegeNotFound: ErrorCode = ErrorCode(33);
    /// MongoDB's code 34, CannotBackfillArray.
    pub const CannotBackfillArray: ErrorCode = ErrorCode(34);
    /// MongoDB's code 35, UserModificationFailed.
    pub const UserModificationFailed: ErrorCode = ErrorCode(35);
    /// MongoDB's code 36, RemoteChangeDetected.
    pub const RemoteChangeDetected: ErrorCode = ErrorCode(36);
    /// MongoDB's code 37, FileRenameFailed.
    pub const FileRenameFailed: ErrorCode = ErrorCode(37);
    /// MongoDB's code 38, FileNotOpen.
    pub const FileNotOpen: ErrorCode = ErrorCode(38);
    /// MongoDB's code 39, FileStreamFailed.
    pub const FileStreamFailed: ErrorCode = ErrorCode(39);
    /// MongoDB's code 40, ConflictingUpdateOperators.
    pub const ConflictingUpdateOperators: ErrorCode = ErrorCode(40);
    /// MongoDB's code 41, FileAlreadyOpen.
    pub const FileAlreadyOpen: ErrorCode = ErrorCode(41);
    /// MongoDB's code 42, LogWriteFailed.
    pub const LogWriteFailed: ErrorCode = ErrorCode(42);
    /// MongoDB's code 43, CursorNotFound.
    pub const CursorNotFound: ErrorCode = ErrorCode(43);
    /// MongoDB's code 45, UserDataInconsistent.
    pub const UserDataInconsistent: ErrorCode = ErrorCode(45);
    /// MongoDB's code 46, LockBusy.
    pub const LockBusy: ErrorCode = ErrorCode(46);
    /// MongoDB's code 47, NoMatchingDocument.
    pub const NoMatchingDocument: ErrorCode = ErrorCode(47);
    /// MongoDB's code 48, NamespaceExists.
    pub const NamespaceExists: ErrorCode = ErrorCode(48);
    /// MongoDB's code 49, InvalidRoleModification.
    pub const InvalidRoleModification: ErrorCode = ErrorCode(49);
    /// MongoDB's code 50, MaxTimeMSExpired.
    pub const MaxTimeMSExpired: ErrorCode = ErrorCode(50);
    /// MongoDB's code 51, ManualInterventionRequired.
    pub const ManualInterventionRequired: ErrorCode = ErrorCode(51);
    /// MongoDB's code 52, DollarPrefixedFieldName.
    pub const DollarPrefixedFieldName: ErrorCode = ErrorCode(52);
    /// MongoDB's code 53, InvalidIdField.
    pub const InvalidIdField: ErrorCode = ErrorCode(53);
    /// MongoDB's code 54, NotSingleValueField.
    pub const NotSingleValueField: ErrorCode = ErrorCode(54);
    /// MongoDB's code 55, InvalidDBRef.
    pub const InvalidDBRef: ErrorCode = ErrorCode(55);
    /// MongoDB's code 56, EmptyFieldName.
    pub const EmptyFieldName: ErrorCode = ErrorCode(56);
    /// MongoDB's code 57, DottedFieldName.
    pub const DottedFieldName: ErrorCode = ErrorCode(57);
    /// MongoDB's code 58, RoleModificationFailed.
    pub const RoleModificationFailed: ErrorCode = ErrorCode(58);
    /// MongoDB's code 59, CommandNotFound.
    pub const CommandNotFound: ErrorCode = ErrorCode(59);
    /// MongoDB's code 61, ShardKeyNotFound.
    pub const ShardKeyNotFound: ErrorCode = ErrorCode(61);
    /// MongoDB's code 62, OplogOperationUnsupported.
    pub const OplogOperationUnsupported: ErrorCode = ErrorCode(62);
    /// MongoDB's code 64, WriteConcernTimeout.
    pub const WriteConcernTimeout: ErrorCode = ErrorCode(64);
    /// MongoDB's code 65, MultipleErrorsOccurred.
    pub const MultipleErrorsOccurred: ErrorCode = ErrorCode(65);
    /// MongoDB's code 66, ImmutableField.
    pub const ImmutableField: ErrorCode = ErrorCode(66);
    /// MongoDB's code 67, CannotCreateIndex.
    pub const CannotCreateIndex: ErrorCode = ErrorCode(67);
    /// MongoDB's code 68, IndexAlreadyExists.
    pub const IndexAlreadyExists: ErrorCode = ErrorCode(68);
    /// MongoDB's code 69, AuthSchemaIncompatible.
    pub const AuthSchemaIncompatible: ErrorCode = ErrorCode(69);
    /// MongoDB's code 70, ShardNotFound.
    pub const ShardNotFound: ErrorCode = ErrorCode(70);
    /// MongoDB's code 71, ReplicaSetNotFound.
    pub const ReplicaSetNotFound: ErrorCode = ErrorCode(71);
    /// MongoDB's code 72, InvalidOptions.
    pub const InvalidOptions: ErrorCode = ErrorCode(72);
    /// MongoDB's code 73, InvalidNamespace.
    pub const InvalidNamespace: ErrorCode = ErrorCode(73);
    /// MongoDB's code 74, NodeNotFound.
    pub const NodeNotFound: ErrorCode = ErrorCode(74);
    /// MongoDB's code 75, WriteConcernLegacyOK.
    pub const WriteConcernLegacyOK: ErrorCode = ErrorCode(75);
    /// MongoDB's code 76, NoReplicationEnabled.
    pub const NoReplicationEnabled: ErrorCode = ErrorCode(76);
    /// MongoDB's code 77, OperationIncomplete.
    pub const OperationIncomplete: ErrorCode = ErrorCode(77);
    /// MongoDB's code 78, CommandResultSchemaViolation.
    pub const CommandResultSchemaViolation: ErrorCode = ErrorCode(78);
    /// MongoDB's code 79, UnknownReplWriteConcern.
    pub const UnknownReplWriteConcern: ErrorCode = ErrorCode(79);
    /// MongoDB's code 80, RoleDataInconsistent.
    pub const RoleDataInconsistent: ErrorCode = ErrorCode(80);
    /// MongoDB's code 81, NoMatchParseContext.
    pub const NoMatchParseContext: ErrorCode = ErrorCode(81);
    /// MongoDB's code 82, NoProgressMade.
    pub const NoProgressMade: ErrorCode = ErrorCode(82);
    /// MongoDB's code 83, RemoteResultsUnavailable.
    pub const RemoteResultsUnavailable: ErrorCode = ErrorCode(83);
    /// MongoDB's code 85, IndexOptionsConflict.
    pub const IndexOptionsConflict: ErrorCode = ErrorCode(85);
    /// MongoDB's code 86, IndexKeySpecsConflict.
    pub const IndexKeySpecsConflict: ErrorCode = ErrorCode(86);
    /// MongoDB's code 87, CannotSplit.
    pub const CannotSplit: ErrorCode = ErrorCode(87);
    /// MongoDB's code 89, NetworkTimeout.
    pub const NetworkTimeout: ErrorCode = ErrorCode(89);
    /// MongoDB's code 90, CallbackCanceled.
    pub const CallbackCanceled: ErrorCode = ErrorCode(90);
    /// MongoDB's code 91, ShutdownInProgress.
    pub const ShutdownInProgress: ErrorCode = ErrorCode(91);
    /// MongoDB's code 92, SecondaryAheadOfPrimary.
    pub const SecondaryAheadOfPrimary: ErrorCode = ErrorCode(92);
    /// MongoDB's code 93, InvalidReplicaSetConfig.
    pub const InvalidReplicaSetConfig: ErrorCode = ErrorCode(93);
    /// MongoDB's code 94, NotYetInitialized.
    pub const NotYetInitialized: ErrorCode = ErrorCode(94);
    /// MongoDB's code 95, NotSecondary.
    pub const NotSecondary: ErrorCode = ErrorCode(95);
    /// MongoDB's code 96, OperationFailed.
    pub const OperationFailed: ErrorCode = ErrorCode(96);
    /// MongoDB's code 97, NoProjectionFound.
    pub const NoProjectionFound: ErrorCode = ErrorCode(97);
    /// MongoDB's code 98, DBPathInUse.
    pub const DBPathInUse: ErrorCode = ErrorCode(98);
    /// MongoDB's code 100, UnsatisfiableWriteConcern.
    pub const UnsatisfiableWriteConcern: ErrorCode = ErrorCode(100);
    /// MongoDB's code 101, OutdatedClient.
    pub const OutdatedClient: ErrorCode = ErrorCode(101);
    /// MongoDB's code 102, IncompatibleAuditMetadata.
    pub const IncompatibleAuditMetadata: ErrorCode = ErrorCode(102);
    /// MongoDB's code 103, NewReplicaSetConfigurationIncompatible.
    pub const NewReplicaSetConfigurationIncompatible: ErrorCode = ErrorCode(103);
    /// MongoDB's code 104, NodeNotElectable.
    pub const NodeNotElectable: ErrorCode = ErrorCode(104);
    /// MongoDB's code 105, IncompatibleShardingMetadata.
    pub const IncompatibleShardingMetadata: ErrorCode = ErrorCode(105);
    /// MongoDB's code 106, DistributedClockSkewed.
    pub const DistributedClockSkewed: ErrorCode = ErrorCode(106);
    /// MongoDB's code 107, LockFailed.
    pub const LockFailed: ErrorCode = ErrorCode(107);
    /// MongoDB's code 108, InconsistentReplicaSetNames.
    pub const InconsistentReplicaSetNames: ErrorCode = ErrorCode(108);
    /// MongoDB's code 109, ConfigurationInProgress.
    pub const ConfigurationInProgress: ErrorCode = ErrorCode(109);
    /// MongoDB's code 110, CannotInitializeNodeWithData.
    pub const CannotInitializeNodeWithData: ErrorCode = ErrorCode(110);
    /// MongoDB's code 111, NotExactValueField.
    pub const NotExactValueField: ErrorCode = ErrorCode(111);
    /// MongoDB's code 112, WriteConflict.
    pub const WriteConflict: ErrorCode = ErrorCode(112);
    /// MongoDB's code 113, InitialSyncFailure.
    pub const InitialSyncFailure: ErrorCode = ErrorCode(113);
    /// MongoDB's code 114, InitialSyncOplogSourceMissing.
    pub const InitialSyncOplogSourceMissing: ErrorCode = ErrorCode(114);
    /// MongoDB's code 115, CommandNotSupported.
    pub const CommandNotSupported: ErrorCode = ErrorCode(115);
    /// MongoDB's code 116, DocTooLargeForCapped.
    pub const DocTooLargeForCapped: ErrorCode = ErrorCode(116);
    /// MongoDB's code 117, ConflictingOperationInProgress.
    pub const ConflictingOperationInProgress: ErrorCode = ErrorCode(117);
    /// MongoDB's code 118, NamespaceNotSharded.
    pub const NamespaceNotSharded: ErrorCode = ErrorCode(118);
    /// MongoDB's code 119, InvalidSyncSource.
    pub const InvalidSyncSource: ErrorCode = ErrorCode(119);
    /// MongoDB's code 120, OplogStartMissing.
    pub const OplogStartMissing: ErrorCode = ErrorCode(120);
    /// MongoDB's code 121, DocumentValidationFailure.
    pub const DocumentValidationFailure: ErrorCode = ErrorCode(121);
    /// MongoDB's code 123, NotAReplicaSet.
    pub const NotAReplicaSet: ErrorCode = ErrorCode(123);
    /// MongoDB's code 124, IncompatibleElectionProtocol.
    pub const IncompatibleElectionProtocol: ErrorCode = ErrorCode(124);
    /// MongoDB's code 125, CommandFailed.
    pub const CommandFailed: ErrorCode = ErrorCode(125);
    /// MongoDB's code 126, RPCProtocolNegotiationFailed.
    pub const RPCProtocolNegotiationFailed: ErrorCode = ErrorCode(126);
    /// MongoDB's code 127, UnrecoverableRollbackError.
    pub const UnrecoverableRollbackError: ErrorCode = ErrorCode(127);
    /// MongoDB's code 128, LockNotFound.
    pub const LockNotFound: ErrorCode = ErrorCode(128);
    /// MongoDB's code 129, LockStateChangeFailed.
    pub const LockStateChangeFailed: ErrorCode = ErrorCode(129);
    /// MongoDB's code 130, SymbolNotFound.
    pub const SymbolNotFound: ErrorCode = ErrorCode(130);
    /// MongoDB's code 133, FailedToSatisfyReadPreference.
    pub const FailedToSatisfyReadPreference: ErrorCode = ErrorCode(133);
    /// MongoDB's code 134, ReadConcernMajorityNotAvailableYet.
    pub const ReadConcernMajorityNotAvailableYet: ErrorCode = ErrorCode(134);
    /// MongoDB's code 135, StaleTerm.
    pub const StaleTerm: ErrorCode = ErrorCode(135);
    /// MongoDB's code 136, CappedPositionLost.
    pub const CappedPositionLost: ErrorCode = ErrorCode(136);
    /// MongoDB's code 137, IncompatibleShardingConfigVersion.
    pub const IncompatibleShardingConfigVersion: ErrorCode = ErrorCode(137);
    /// MongoDB's code 138, RemoteOplogStale.
    pub const RemoteOplogStale: ErrorCode = ErrorCode(138);
    /// MongoDB's code 139, JSInterpreterFailure.
    pub const JSInterpreterFailure: ErrorCode = ErrorCode(139);
    /// MongoDB's code 140, InvalidSSLConfiguration.
    pub const InvalidSSLConfiguration: ErrorCode = ErrorCode(140);
    /// MongoDB's code 141, SSLHandshakeFailed.
    pub const SSLHandshakeFailed: ErrorCode = ErrorCode(141);
    /// MongoDB's code 142, JSUncatchableError.
    pub const JSUncatchableError: ErrorCode = ErrorCode(142);
    /// MongoDB's code 143, CursorInUse.
    pub const CursorInUse: ErrorCode = ErrorCode(143);
    /// MongoDB's code 144, IncompatibleCatalogManager.
    pub const IncompatibleCatalogManager: ErrorCode = ErrorCode(144);
    /// MongoDB's code 145, PooledConnectionsDropped.
    pub const PooledConnectionsDropped: ErrorCode = ErrorCode(145);
    /// MongoDB's code 146, ExceededMemoryLimit.
    pub const ExceededMemoryLimit: ErrorCode = ErrorCode(146);
    /// MongoDB's code 147, ZLibError.
    pub const ZLibError: ErrorCode = ErrorCode(147);
    /// MongoDB's code 148, ReadConcernMajorityNotEnabled.
    pub const ReadConcernMajorityNotEnabled: ErrorCode = ErrorCode(148);
    /// MongoDB's code 149, NoConfigPrimary.
    pub const NoConfigPrimary: ErrorCode = ErrorCode(149);
    /// MongoDB's code 150, StaleEpoch.
    pub const StaleEpoch: ErrorCode = ErrorCode(150);
    /// MongoDB's code 151, OperationCannotBeBatched.
    pub const OperationCannotBeBatched: ErrorCode = ErrorCode(151);
    /// MongoDB's code 152, OplogOutOfOrder.
    pub const OplogOutOfOrder: ErrorCode = ErrorCode(152);
    /// MongoDB's code 153, ChunkTooBig.
    pub const ChunkTooBig: ErrorCode = ErrorCode(153);
    /// MongoDB's code 154, InconsistentShardIdentity.
    pub const InconsistentShardIdentity: ErrorCode = ErrorCode(154);
    /// MongoDB's code 155, CannotApplyOplogWhilePrimary.
    pub const CannotApplyOplogWhilePrimary: ErrorCode = ErrorCode(155);
    /// MongoDB's code 157, CanRepairToDowngrade.
    pub const CanRepairToDowngrade: ErrorCode = ErrorCode(157);
    /// MongoDB's code 158, MustUpgrade.
    pub const MustUpgrade: ErrorCode = ErrorCode(158);
    /// MongoDB's code 159, DurationOverflow.
    pub const DurationOverflow: ErrorCode = ErrorCode(159);
    /// MongoDB's code 160, MaxStalenessOutOfRange.
    pub const MaxStalenessOutOfRange: ErrorCode = ErrorCode(160);
    /// MongoDB's code 161, IncompatibleCollationVersion.
    pub const IncompatibleCollationVersion: ErrorCode = ErrorCode(161);
    /// MongoDB's code 162, CollectionIsEmpty.
    pub const CollectionIsEmpty: ErrorCode = ErrorCode(162);
    /// MongoDB's code 163, ZoneStillInUse.
    pub const ZoneStillInUse: ErrorCode = ErrorCode(163);
    /// MongoDB's code 164, InitialSyncActive.
    pub const InitialSyncActive: ErrorCode = ErrorCode(164);
    /// MongoDB's code 165, ViewDepthLimitExceeded.
    pub const ViewDepthLimitExceeded: ErrorCode = ErrorCode(165);
    /// MongoDB's code 166, CommandNotSupportedOnView.
    pub const CommandNotSupportedOnView: ErrorCode = ErrorCode(166);
    /// MongoDB's code 167, OptionNotSupportedOnView.
    pub const OptionNotSupportedOnView: ErrorCode = ErrorCode(167);
    /// MongoDB's code 168, InvalidPipelineOperator.
    pub const InvalidPipelineOperator: ErrorCode = ErrorCode(168);
    /// MongoDB's code 169, CommandOnShardedViewNotSupportedOnMongod.
    pub const CommandOnShardedViewNotSupportedOnMongod: ErrorCode = ErrorCode(169);
    /// MongoDB's code 170, TooManyMatchingDocuments.
    pub const TooManyMatchingDocuments: ErrorCode = ErrorCode(170);
    /// MongoDB's code 171, CannotIndexParallelArrays.
    pub const CannotIndexParallelArrays: ErrorCode = ErrorCode(171);
    /// MongoDB's code 172, TransportSessionClosed.
    pub const TransportSessionClosed: ErrorCode = ErrorCode(172);
    /// MongoDB's code 173, TransportSessionNotFound.
    pub const TransportSessionNotFound: ErrorCode = ErrorCode(173);
    /// MongoDB's code 174, TransportSessionUnknown.
    pub const TransportSessionUnknown: ErrorCode = ErrorCode(174);
    /// MongoDB's code 175, QueryPlanKilled.
    pub const QueryPlanKilled: ErrorCode = ErrorCode(175);
    /// MongoDB's code 176, FileOpenFailed.
    pub const FileOpenFailed: ErrorCode = ErrorCode(176);
    /// MongoDB's code 177, ZoneNotFound.
    pub const ZoneNotFound: ErrorCode = ErrorCode(177);
    /// MongoDB's code 178, RangeOverlapConflict.
    pub const RangeOverlapConflict: ErrorCode = ErrorCode(178);
    /// MongoDB's code 179, WindowsPdhError.
    pub const WindowsPdhError: ErrorCode = ErrorCode(179);
    /// MongoDB's code 180, BadPerfCounterPath.
    pub const BadPerfCounterPath: ErrorCode = ErrorCode(180);
    /// MongoDB's code 181, AmbiguousIndexKeyPattern.
    pub const AmbiguousIndexKeyPattern: ErrorCode = ErrorCode(181);
    /// MongoDB's code 182, InvalidViewDefinition.
    pub const InvalidViewDefinition: ErrorCode = ErrorCode(182);
    /// MongoDB's code 183, ClientMetadataMissingField.
    pub const ClientMetadataMissingField: ErrorCode = ErrorCode(183);
    /// MongoDB's code 184, ClientMetadataAppNameTooLarge.
    pub const ClientMetadataAppNameTooLarge: ErrorCode = ErrorCode(184);
    /// MongoDB's code 185, ClientMetadataDocumentTooLarge.
    pub const ClientMetadataDocumentTooLarge: ErrorCode = ErrorCode(185);
    /// MongoDB's code 186, ClientMetadataCannotBeMutated.
    pub const ClientMetadataCannotBeMutated: ErrorCode = ErrorCode(186);
    /// MongoDB's code 187, LinearizableReadConcernError.
    pub const LinearizableReadConcernError: ErrorCode = ErrorCode(187);
    /// MongoDB's code 188, IncompatibleServerVersion.
    pub const IncompatibleServerVersion: ErrorCode = ErrorCode(188);
    /// MongoDB's code 189, PrimarySteppedDown.
    pub const PrimarySteppedDown: ErrorCode = ErrorCode(189);
    /// MongoDB's code 190, MasterSlaveConnectionFailure.
    pub const MasterSlaveConnectionFailure: ErrorCode = ErrorCode(190);
    /// MongoDB's code 192, FailPointEnabled.
    pub const FailPointEnabled: ErrorCode = ErrorCode(192);
    /// MongoDB's code 194, BalancerInterrupted.
    pub const BalancerInterrupted: ErrorCode = ErrorCode(194);
    /// MongoDB's code 195, ViewPipelineMaxSizeExceeded.
    pub const ViewPipelineMaxSizeExceeded: ErrorCode = ErrorCode(195);
    /// MongoDB's code 197, InvalidIndexSpecificationOption.
    pub const InvalidIndexSpecificationOption: ErrorCode = ErrorCode(197);
    /// MongoDB's code 199, ReplicaSetMonitorRemoved.
    pub const ReplicaSetMonitorRemoved: ErrorCode = ErrorCode(199);
    /// MongoDB's code 200, ChunkRangeCleanupPending.
    pub const ChunkRangeCleanupPending: ErrorCode = ErrorCode(200);
    /// MongoDB's code 201, CannotBuildIndexKeys.
    pub const CannotBuildIndexKeys: ErrorCode = ErrorCode(201);
    /// MongoDB's code 202, NetworkInterfaceExceededTimeLimit.
    pub const NetworkInterfaceExceededTimeLimit: ErrorCode = ErrorCode(202);
    /// MongoDB's code 203, ShardingStateNotInitialized.
    pub const ShardingStateNotInitialized: ErrorCode = ErrorCode(203);
    /// MongoDB's code 204, TimeProofMismatch.
    pub const TimeProofMismatch: ErrorCode = ErrorCode(204);
    /// MongoDB's code 205, ClusterTimeFailsRateLimiter.
    pub const ClusterTimeFailsRateLimiter: ErrorCode = ErrorCode(205);
    /// MongoDB's code 206, NoSuchSession.
    pub const NoSuchSession: ErrorCode = ErrorCode(206);
    /// MongoDB's code 207, InvalidUUID.
    pub const InvalidUUID: ErrorCode = ErrorCode(207);
    /// MongoDB's code 208, TooManyLocks.
    pub const TooManyLocks: ErrorCode = ErrorCode(208);
    /// MongoDB's code 209, StaleClusterTime.
    pub const StaleClusterTime: ErrorCode = ErrorCode(209);
    /// MongoDB's code 210, CannotVerifyAndSignLogicalTime.
    pub const CannotVerifyAndSignLogicalTime: ErrorCode = ErrorCode(210);
    /// MongoDB's code 211, KeyNotFound.
    pub const KeyNotFound: ErrorCode = ErrorCode(211);
    /// MongoDB's code 212, IncompatibleRollbackAlgorithm.
    pub const IncompatibleRollbackAlgorithm: ErrorCode = ErrorCode(212);
    /// MongoDB's code 213, DuplicateSession.
    pub const DuplicateSession: ErrorCode = ErrorCode(213);
    /// MongoDB's code 214, AuthenticationRestrictionUnmet.
    pub const AuthenticationRestrictionUnmet: ErrorCode = ErrorCode(214);
    /// MongoDB's code 215, DatabaseDropPending.
    pub const DatabaseDropPending: ErrorCode = ErrorCode(215);
    /// MongoDB's code 216, ElectionInProgress.
    pub const ElectionInProgress: ErrorCode = ErrorCode(216);
    /// MongoDB's code 217, IncompleteTransactionHistory.
    pub const IncompleteTransactionHistory: ErrorCode = ErrorCode(217);
    /// MongoDB's code 218, UpdateOperationFailed.
    pub const UpdateOperationFailed: ErrorCode = ErrorCode(218);
    /// MongoDB's code 219, FTDCPathNotSet.
    pub const FTDCPathNotSet: ErrorCode = ErrorCode(219);
    /// MongoDB's code 220, FTDCPathAlreadySet.
    pub const FTDCPathAlreadySet: ErrorCode = ErrorCode(220);
    /// MongoDB's code 221, IndexModified.
    pub const IndexModified: ErrorCode = ErrorCode(221);
    /// MongoDB's code 222, CloseChangeStream.
    pub const CloseChangeStream: ErrorCode = ErrorCode(222);
    /// MongoDB's code 223, IllegalOpMsgFlag.
    pub const IllegalOpMsgFlag: ErrorCode = ErrorCode(223);
    /// MongoDB's code 224, QueryFeatureNotAllowed.
    pub const QueryFeatureNotAllowed: ErrorCode = ErrorCode(224);
    /// MongoDB's code 225, TransactionTooOld.
    pub const TransactionTooOld: ErrorCode = ErrorCode(225);
    /// MongoDB's code 226, AtomicityFailure.
    pub const AtomicityFailure: ErrorCode = ErrorCode(226);
    /// MongoDB's code 227, CannotImplicitlyCreateCollection.
    pub const CannotImplicitlyCreateCollection: ErrorCode = ErrorCode(227);
    /// MongoDB's code 228, SessionTransferIncomplete.
    pub const SessionTransferIncomplete: ErrorCode = ErrorCode(228);
    /// MongoDB's code 229, MustDowngrade.
    pub const MustDowngrade: ErrorCode = ErrorCode(229);
    /// MongoDB's code 230, DNSHostNotFound.
    pub const DNSHostNotFound: ErrorCode = ErrorCode(230);
    /// MongoDB's code 231, DNSProtocolError.
    pub const DNSProtocolError: ErrorCode = ErrorCode(231);
    /// MongoDB's code 232, MaxSubPipelineDepthExceeded.
    pub const MaxSubPipelineDepthExceeded: ErrorCode = ErrorCode(232);
    /// MongoDB's code 233, TooManyDocumentSequences.
    pub const TooManyDocumentSequences: ErrorCode = ErrorCode(233);
    /// MongoDB's code 234, RetryChangeStream.
    pub const RetryChangeStream: ErrorCode = ErrorCode(234);
    /// MongoDB's code 235, InternalErrorNotSupported.
    pub const InternalErrorNotSupported: ErrorCode = ErrorCode(235);
    /// MongoDB's code 237, CursorKilled.
    pub const CursorKilled: ErrorCode = ErrorCode(237);
    /// MongoDB's code 238, NotImplemented.
    pub const NotImplemented: ErrorCode = ErrorCode(238);
    /// MongoDB's code 239, SnapshotTooOld.
    pub const SnapshotTooOld: ErrorCode = ErrorCode(239);
    /// MongoDB's code 240, DNSRecordTypeMismatch.
    pub const DNSRecordTypeMismatch: ErrorCode = ErrorCode(240);
    /// MongoDB's code 241, ConversionFailure.
    pub const ConversionFailure: ErrorCode = ErrorCode(241);
    /// MongoDB's code 242, CannotCreateCollection.
    pub const CannotCreateCollection: ErrorCode = ErrorCode(242);
    /// MongoDB's code 243, IncompatibleWithUpgradedServer.
    pub const IncompatibleWithUpgradedServer: ErrorCode = ErrorCode(243);
    /// MongoDB's code 245, BrokenPromise.
    pub const BrokenPromise: ErrorCode = ErrorCode(245);
    /// MongoDB's code 246, SnapshotUnavailable.
    pub const SnapshotUnavailable: ErrorCode = ErrorCode(246);
    /// MongoDB's code 247, ProducerConsumerQueueBatchTooLarge.
    pub const ProducerConsumerQueueBatchTooLarge: ErrorCode = ErrorCode(247);
    /// MongoDB's code 248, ProducerConsumerQueueEndClosed.
    pub const ProducerConsumerQueueEndClosed: ErrorCode = ErrorCode(248);
    /// MongoDB's code 249, StaleDbVersion.
    pub const StaleDbVersion: ErrorCode = ErrorCode(249);
    /// MongoDB's code 250, StaleChunkHistory.
    pub const StaleChunkHistory: ErrorCode = ErrorCode(250);
    /// MongoDB's code 251, NoSuchTransaction.
    pub const NoSuchTransaction: ErrorCode = ErrorCode(251);
    /// MongoDB's code 252, ReentrancyNotAllowed.
    pub const ReentrancyNotAllowed: ErrorCode = ErrorCode(252);
    /// MongoDB's code 256, TransactionCommitted.
    pub const TransactionCommitted: ErrorCode = ErrorCode(256);
    /// MongoDB's code 257, TransactionTooLarge.
    pub const TransactionTooLarge: ErrorCode = ErrorCode(257);
    /// MongoDB's code 258, UnknownFeatureCompatibilityVersion.
    pub const UnknownFeatureCompatibilityVersion: ErrorCode = ErrorCode(258);
    /// MongoDB's code 259, KeyedExecutorRetry.
    pub const KeyedExecutorRetry: ErrorCode = ErrorCode(259);
    /// MongoDB's code 260, InvalidResumeToken.
    pub const InvalidResumeToken: ErrorCode = ErrorCode(260);
    /// MongoDB's code 261, TooManyLogicalSessions.
    pub const TooManyLogicalSessions: ErrorCode = ErrorCode(261);
    /// MongoDB's code 262, ExceededTimeLimit.
    pub const ExceededTimeLimit: ErrorCode = ErrorCode(262);
    /// MongoDB's code 263, OperationNotSupportedInTransaction.
    pub const OperationNotSupportedInTransaction: ErrorCode = ErrorCode(263);
    /// MongoDB's code 264, TooManyFilesOpen.
    pub const TooManyFilesOpen: ErrorCode = ErrorCode(264);
    /// MongoDB's code 265, OrphanedRangeCleanUpFailed.
    pub const OrphanedRangeCleanUpFailed: ErrorCode = ErrorCode(265);
    /// MongoDB's code 266, FailPointSetFailed.
    pub const FailPointSetFailed: ErrorCode = ErrorCode(266);
    /// MongoDB's code 267, PreparedTransactionInProgress.
    pub const PreparedTransactionInProgress: ErrorCode = ErrorCode(267);
    /// MongoDB's code 268, CannotBackup.
    pub const CannotBackup: ErrorCode = ErrorCode(268);
    /// MongoDB's code 269, DataModifiedByRepair.
    pub const DataModifiedByRepair: ErrorCode = ErrorCode(269);
    /// MongoDB's code 270, RepairedReplicaSetNode.
    pub const RepairedReplicaSetNode: ErrorCode = ErrorCode(270);
    /// MongoDB's code 271, JSInterpreterFailureWithStack.
    pub const JSInterpreterFailureWithStack: ErrorCode = ErrorCode(271);
    /// MongoDB's code 272, MigrationConflict.
    pub const MigrationConflict: ErrorCode = ErrorCode(272);
    /// MongoDB's code 273, ProducerConsumerQueueProducerQueueDepthExceeded.
    pub const ProducerConsumerQueueProducerQueueDepthExceeded: ErrorCode = ErrorCode(273);
    /// MongoDB's code 274, ProducerConsumerQueueConsumed.
    pub const ProducerConsumerQueueConsumed: ErrorCode = ErrorCode(274);
    /// MongoDB's code 275, ExchangePassthrough.
    pub const ExchangePassthrough: ErrorCode = ErrorCode(275);
    /// MongoDB's code 276, IndexBuildAborted.
    pub const IndexBuildAborted: ErrorCode = ErrorCode(276);
    /// MongoDB's code 277, AlarmAlreadyFulfilled.
    pub const AlarmAlreadyFulfilled: ErrorCode = ErrorCode(277);
    /// MongoDB's code 278, UnsatisfiableCommitQuorum.
    pub const UnsatisfiableCommitQuorum: ErrorCode = ErrorCode(278);
    /// MongoDB's code 279, ClientDisconnect.
    pub const ClientDisconnect: ErrorCode = ErrorCode(279);
    /// MongoDB's code 280, ChangeStreamFatalError.
    pub const ChangeStreamFatalError: ErrorCode = ErrorCode(280);
    /// MongoDB's code 281, TransactionCoordinatorSteppingDown.
    pub const TransactionCoordinatorSteppingDown: ErrorCode = ErrorCode(281);
    /// MongoDB's code 282, TransactionCoordinatorReachedAbortDecision.
    pub const TransactionCoordinatorReachedAbortDecision: ErrorCode = ErrorCode(282);
    /// MongoDB's code 283, WouldChangeOwningShard.
    pub const WouldChangeOwningShard: ErrorCode = ErrorCode(283);
    /// MongoDB's code 285, IndexBuildAlreadyInProgress.
    pub const IndexBuildAlreadyInProgress: ErrorCode = ErrorCode(285);
    /// MongoDB's code 286, ChangeStreamHistoryLost.
    pub const ChangeStreamHistoryLost: ErrorCode = ErrorCode(286);
    /// MongoDB's code 288, ChecksumMismatch.
    pub const ChecksumMismatch: ErrorCode = ErrorCode(288);
    /// MongoDB's code 290, TransactionExceededLifetimeLimitSeconds.
    pub const TransactionExceededLifetimeLimitSeconds: ErrorCode = ErrorCode(290);
    /// MongoDB's code 291, NoQueryExecutionPlans.
    pub const NoQueryExecutionPlans: ErrorCode = ErrorCode(291);
    /// MongoDB's code 292, QueryExceededMemoryLimitNoDiskUseAllowed.
    pub const QueryExceededMemoryLimitNoDiskUseAllowed: ErrorCode = ErrorCode(292);
    /// MongoDB's code 293, InvalidSeedList.
    pub const InvalidSeedList: ErrorCode = ErrorCode(293);
    /// MongoDB's code 294, InvalidTopologyType.
    pub const InvalidTopologyType: ErrorCode = ErrorCode(294);
    /// MongoDB's code 295, InvalidHeartBeatFrequency.
    pub const InvalidHeartBeatFrequency: ErrorCode = ErrorCode(295);
    /// MongoDB's code 296, TopologySetNameRequired.
    pub const TopologySetNameRequired: ErrorCode = ErrorCode(296);
    /// MongoDB's code 297, HierarchicalAcquisitionLevelViolation.
    pub const HierarchicalAcquisitionLevelViolation: ErrorCode = ErrorCode(297);
    /// MongoDB's code 298, InvalidServerType.
    pub const InvalidServerType: ErrorCode = ErrorCode(298);
    /// MongoDB's code 299, OCSPCertificateStatusRevoked.
    pub const OCSPCertificateStatusRevoked: ErrorCode = ErrorCode(299);
    /// MongoDB's code 300, RangeDeletionAbandonedBecauseCollectionWithUUIDDoesNotExist.
    pub const RangeDeletionAbandonedBecauseCollectionWithUUIDDoesNotExist: ErrorCode = ErrorCode(300);
    /// MongoDB's code 301, DataCorruptionDetected.
    pub const DataCorruptionDetected: ErrorCode = ErrorCode(301);
    /// MongoDB's code 302, OCSPCertificateStatusUnknown.
    pub const OCSPCertificateStatusUnknown: ErrorCode = ErrorCode(302);
    /// MongoDB's code 303, SplitHorizonChange.
    pub const SplitHorizonChange: ErrorCode = ErrorCode(303);
    /// MongoDB's code 307, RangeDeletionAbandonedBecauseTaskDocumentDoesNotExist.
    pub const RangeDeletionAbandonedBecauseTaskDocumentDoesNotExist: ErrorCode = ErrorCode(307);
    /// MongoDB's code 308, CurrentConfigNotCommittedYet.
    pub const CurrentConfigNotCommittedYet: ErrorCode = ErrorCode(308);
    /// MongoDB's code 309, ExhaustCommandFinished.
    pub const ExhaustCommandFinished: ErrorCode = ErrorCode(309);
    /// MongoDB's code 310, PeriodicJobIsStopped.
    pub const PeriodicJobIsStopped: ErrorCode = ErrorCode(310);
    /// MongoDB's code 313, ResumableRangeDeleterDisabled.
    pub const ResumableRangeDeleterDisabled: ErrorCode = ErrorCode(313);
    /// MongoDB's code 314, ObjectIsBusy.
    pub const ObjectIsBusy: ErrorCode = ErrorCode(314);
    /// MongoDB's code 319, MovePrimaryInProgress.
    pub const MovePrimaryInProgress: ErrorCode = ErrorCode(319);
    /// MongoDB's code 322, APIVersionError.
    pub const APIVersionError: ErrorCode = ErrorCode(322);
    /// MongoDB's code 323, APIStrictError.
    pub const APIStrictError: ErrorCode = ErrorCode(323);
    /// MongoDB's code 324, APIDeprecationError.
    pub const APIDeprecationError: ErrorCode = ErrorCode(324);
    /// MongoDB's code 326, OplogQueryMinTsMissing.
    pub const OplogQueryMinTsMissing: ErrorCode = ErrorCode(326);
    /// MongoDB's code 330, SkipCommandExecution.
    pub const SkipCommandExecution: ErrorCode = ErrorCode(330);
    /// MongoDB's code 331, FailedToRunWithReplyBuilder.
    pub const FailedToRunWithReplyBuilder: ErrorCode = ErrorCode(331);
    /// MongoDB's code 332, CannotDowngrade.
    pub const CannotDowngrade: ErrorCode = ErrorCode(332);
    /// MongoDB's code 334, MechanismUnavailable.
    pub const MechanismUnavailable: ErrorCode = ErrorCode(334);
    /// MongoDB's code 338, ReshardCollectionInProgress.
    pub const ReshardCollectionInProgress: ErrorCode = ErrorCode(338);
    /// MongoDB's code 339, NoSuchReshardCollection.
    pub const NoSuchReshardCollection: ErrorCode = ErrorCode(339);
    /// MongoDB's code 340, ReshardCollectionCommitted.
    pub const ReshardCollectionCommitted: ErrorCode = ErrorCode(340);
    /// MongoDB's code 341, ReshardCollectionAborted.
    pub const ReshardCollectionAborted: ErrorCode = ErrorCode(341);
    /// MongoDB's code 342, ReshardingCriticalSectionTimeout.
    pub const ReshardingCriticalSectionTimeout: ErrorCode = ErrorCode(342);
    /// MongoDB's code 344, AuditingNotEnabled.
    pub const AuditingNotEnabled: ErrorCode = ErrorCode(344);
    /// MongoDB's code 345, RuntimeAuditConfigurationNotEnabled.
    pub const RuntimeAuditConfigurationNotEnabled: ErrorCode = ErrorCode(345);
    /// MongoDB's code 346, ChangeStreamInvalidated.
    pub const ChangeStreamInvalidated: ErrorCode = ErrorCode(346);
    /// MongoDB's code 347, APIMismatchError.
    pub const APIMismatchError: ErrorCode = ErrorCode(347);
    /// MongoDB's code 348, ChangeStreamTopologyChange.
    pub const ChangeStreamTopologyChange: ErrorCode = ErrorCode(348);
    /// MongoDB's code 349, KeyPatternShorterThanBound.
    pub const KeyPatternShorterThanBound: ErrorCode = ErrorCode(349);
    /// MongoDB's code 350, ReshardCollectionTruncatedError.
    pub const ReshardCollectionTruncatedError: ErrorCode = ErrorCode(350);
    /// MongoDB's code 351, ChangeStreamStartAfterInvalidate.
    pub const ChangeStreamStartAfterInvalidate: ErrorCode = ErrorCode(351);
    /// MongoDB's code 352, UnsupportedOpQueryCommand.
    pub const UnsupportedOpQueryCommand: ErrorCode = ErrorCode(352);
    /// MongoDB's code 354, LoadBalancerSupportMismatch.
    pub const LoadBalancerSupportMismatch: ErrorCode = ErrorCode(354);
    /// MongoDB's code 355, InterruptedDueToStorageChange.
    pub const InterruptedDueToStorageChange: ErrorCode = ErrorCode(355);
    /// MongoDB's code 356, TxnRetryCounterTooOld.
    pub const TxnRetryCounterTooOld: ErrorCode = ErrorCode(356);
    /// MongoDB's code 357, InvalidBSONType.
    pub const InvalidBSONType: ErrorCode = ErrorCode(357);
    /// MongoDB's code 358, InternalTransactionNotSupported.
    pub const InternalTransactionNotSupported: ErrorCode = ErrorCode(358);
    /// MongoDB's code 359, CannotConvertIndexToUnique.
    pub const CannotConvertIndexToUnique: ErrorCode = ErrorCode(359);
    /// MongoDB's code 361, CollectionUUIDMismatch.
    pub const CollectionUUIDMismatch: ErrorCode = ErrorCode(361);
    /// MongoDB's code 362, FutureAlreadyRetrieved.
    pub const FutureAlreadyRetrieved: ErrorCode = ErrorCode(362);
    /// MongoDB's code 363, RetryableTransactionInProgress.
    pub const RetryableTransactionInProgress: ErrorCode = ErrorCode(363);
    /// MongoDB's code 365, TemporarilyUnavailable.
    pub const TemporarilyUnavailable: ErrorCode = ErrorCode(365);
    /// MongoDB's code 366, WouldChangeOwningShardDeletedNoDocument.
    pub const WouldChangeOwningShardDeletedNoDocument: ErrorCode = ErrorCode(366);
    /// MongoDB's code 369, FLETransactionAbort.
    pub const FLETransactionAbort: ErrorCode = ErrorCode(369);
    /// MongoDB's code 370, CannotDropShardKeyIndex.
    pub const CannotDropShardKeyIndex: ErrorCode = ErrorCode(370);
    /// MongoDB's code 371, UserWritesBlocked.
    pub const UserWritesBlocked: ErrorCode = ErrorCode(371);
    /// MongoDB's code 373, InternalTransactionsExhaustiveFindHasMore.
    pub const InternalTransactionsExhaustiveFindHasMore: ErrorCode = ErrorCode(373);
    /// MongoDB's code 376, ChangeStreamNotEnabled.
    pub const ChangeStreamNotEnabled: ErrorCode = ErrorCode(376);
    /// MongoDB's code 377, FLEMaxTagLimitExceeded.
    pub const FLEMaxTagLimitExceeded: ErrorCode = ErrorCode(377);
    /// MongoDB's code 378, NonConformantBSON.
    pub const NonConformantBSON: ErrorCode = ErrorCode(378);
    /// MongoDB's code 380, RequestAlreadyFulfilled.
    pub const RequestAlreadyFulfilled: ErrorCode = ErrorCode(380);
    /// MongoDB's code 383, CollectionIsEmptyLocally.
    pub const CollectionIsEmptyLocally: ErrorCode = ErrorCode(383);
    /// MongoDB's code 385, ConflictingServerlessOperation.
    pub const ConflictingServerlessOperation: ErrorCode = ErrorCode(385);
    /// MongoDB's code 386, DuplicateKeyId.
    pub const DuplicateKeyId: ErrorCode = ErrorCode(386);
    /// MongoDB's code 388, TransactionTooLargeForCache.
    pub const TransactionTooLargeForCache: ErrorCode = ErrorCode(388);
    /// MongoDB's code 389, LibmongocryptError.
    pub const LibmongocryptError: ErrorCode = ErrorCode(389);
    /// MongoDB's code 390, InvalidSignature.
    pub const InvalidSignature: ErrorCode = ErrorCode(390);
    /// MongoDB's code 391, ReauthenticationRequired.
    pub const ReauthenticationRequired: ErrorCode = ErrorCode(391);
    /// MongoDB's code 392, InvalidJWT.
    pub const InvalidJWT: ErrorCode = ErrorCode(392);
    /// MongoDB's code 393, InvalidTenantId.
    pub const InvalidTenantId: ErrorCode = ErrorCode(393);
    /// MongoDB's code 395, TruncatedSerialization.
    pub const TruncatedSerialization: ErrorCode = ErrorCode(395);
    /// MongoDB's code 396, IndexInformationTooLarge.
    pub const IndexInformationTooLarge: ErrorCode = ErrorCode(396);
    /// MongoDB's code 398, StreamTerminated.
    pub const StreamTerminated: ErrorCode = ErrorCode(398);
    /// MongoDB's code 400, CannotUpgrade.
    pub const CannotUpgrade: ErrorCode = ErrorCode(400);
    /// MongoDB's code 402, ResourceExhausted.
    pub const ResourceExhausted: ErrorCode = ErrorCode(402);
    /// MongoDB's code 404, LDAPRoleAcquisitionError.
    pub const LDAPRoleAcquisitionError: ErrorCode = ErrorCode(404);
    /// MongoDB's code 405, CannotCreateChunkDistribution.
    pub const CannotCreateChunkDistribution: ErrorCode = ErrorCode(405);
    /// MongoDB's code 408, CannotInsertTimeseriesBucketsWithMixedSchema.
    pub const CannotInsertTimeseriesBucketsWithMixedSchema: ErrorCode = ErrorCode(408);
    /// MongoDB's code 409, TimeseriesBucketCompressionFailed.
    pub const TimeseriesBucketCompressionFailed: ErrorCode = ErrorCode(409);
    /// MongoDB's code 411, QueryRejectedBySettings.
    pub const QueryRejectedBySettings: ErrorCode = ErrorCode(411);
    /// MongoDB's code 412, UpdatesStillPending.
    pub const UpdatesStillPending: ErrorCode = ErrorCode(412);
    /// MongoDB's code 426, IndexIsEmpty.
    pub const IndexIsEmpty: ErrorCode = ErrorCode(426);
    /// MongoDB's code 430, IndexKeyOrderViolation.
    pub const IndexKeyOrderViolation: ErrorCode = ErrorCode(430);
    /// MongoDB's code 432, OfflineValidationFailedToComplete.
    pub const OfflineValidationFailedToComplete: ErrorCode = ErrorCode(432);
    /// MongoDB's code 433, AdmissionQueueOverflow.
    pub const AdmissionQueueOverflow: ErrorCode = ErrorCode(433);
    /// MongoDB's code 434, NoDistinctScansForDistinctEligibleQuery.
    pub const NoDistinctScansForDistinctEligibleQuery: ErrorCode = ErrorCode(434);
    /// MongoDB's code 442, RetryMultiPlanning.
    pub const RetryMultiPlanning: ErrorCode = ErrorCode(442);
    /// MongoDB's code 449, RateLimitExceeded.
    pub const RateLimitExceeded: ErrorCode = ErrorCode(449);
    /// MongoDB's code 462, IngressRequestRateLimitExceeded.
    pub const IngressRequestRateLimitExceeded: ErrorCode = ErrorCode(462);
    /// MongoDB's code 9001, SocketException.
    pub const SocketException: ErrorCode = ErrorCode(9001);
    /// MongoDB's code 10003, CannotGrowDocumentInCappedNamespace.
    pub const CannotGrowDocumentInCappedNamespace: ErrorCode = ErrorCode(10003);
    /// MongoDB's code 10058, LegacyNotPrimary.
    pub const LegacyNotPrimary: ErrorCode = ErrorCode(10058);
    /// MongoDB's code 10107, NotWritablePrimary.
    pub const NotWritablePrimary: ErrorCode = ErrorCode(10107);
    /// MongoDB's code 10334, BSONObjectTooLarge.
    pub const BSONObjectTooLarge: ErrorCode = ErrorCode(10334);
    /// MongoDB's code 11000, DuplicateKey.
    pub const DuplicateKey: ErrorCode = ErrorCode(11000);
    /// MongoDB's code 11600, InterruptedAtShutdown.
    pub const InterruptedAtShutdown: ErrorCode = ErrorCode(11600);
    /// MongoDB's code 11601, Interrupted.
    pub const Interrupted: ErrorCode = ErrorCode(11601);
    /// MongoDB's code 11602, InterruptedDueToReplStateChange.
    pub const InterruptedDueToReplStateChange: ErrorCode = ErrorCode(11602);
    /// MongoDB's code 12586, BackgroundOperationInProgressForDatabase.
    pub const BackgroundOperationInProgressForDatabase: ErrorCode = ErrorCode(12586);
    /// MongoDB's code 12587, BackgroundOperationInProgressForNamespace.
    pub const BackgroundOperationInProgressForNamespace: ErrorCode = ErrorCode(12587);
    /// MongoDB's code 13113, MergeStageNoMatchingDocument.
    pub const MergeStageNoMatchingDocument: ErrorCode = ErrorCode(13113);
    /// MongoDB's code 13297, DatabaseDifferCase.
    pub const DatabaseDifferCase: ErrorCode = ErrorCode(13297);
    /// MongoDB's code 13388, StaleConfig.
    pub const StaleConfig: ErrorCode = ErrorCode(13388);
    /// MongoDB's code 13435, NotPrimaryNoSecondaryOk.
    pub const NotPrimaryNoSecondaryOk: ErrorCode = ErrorCode(13435);
    /// MongoDB's code 13436, NotPrimaryOrSecondary.
    pub const NotPrimaryOrSecondary: ErrorCode = ErrorCode(13436);
    /// MongoDB's code 14031, OutOfDiskSpace.
    pub const OutOfDiskSpace: ErrorCode = ErrorCode(14031);
    /// MongoDB's code 28769, NamespaceCannotBeSharded.
    pub const NamespaceCannotBeSharded: ErrorCode = ErrorCode(28769);
    /// MongoDB's code 31082, SearchNotEnabled.
    pub const SearchNotEnabled: ErrorCode = ErrorCode(31082);
    /// MongoDB's code 40413, IDLDuplicateField.
    pub const IDLDuplicateField: ErrorCode = ErrorCode(40413);
    /// MongoDB's code 40414, IDLFailedToParse.
    pub const IDLFailedToParse: ErrorCode = ErrorCode(40414);
    /// MongoDB's code 40415, IDLUnknownField.
    pub const IDLUnknownField: ErrorCode = ErrorCode(40415);
    /// MongoDB's code 46841, ClientMarkedKilled.
    pub const ClientMarkedKilled: ErrorCode = ErrorCode(46841);
    /// MongoDB's code 50768, NotARetryableWriteCommand.
    pub const NotARetryableWriteCommand: ErrorCode = ErrorCode(50768);
}
