//! Methods, their code, and the stubs that they are entered through.

use super::{Inline, data};
use crate::base::Addr;

data! {
    /// `MethodDesc` (method.hpp).
    MethodDesc {
        /// Its place in the chunk, in units of `MethodDescAlignment`.
        ChunkIndex: u8,
        Slot: u16,
        Flags: u16,
        Flags3AndTokenRemainder: u16,
        /// .NET 9 and later: `MethodDescCodeData`.
        CodeData: Addr,
    }

    /// `MethodDescChunk` (method.hpp).
    MethodDescChunk {
        Next: Addr,
        /// Both minus one; the size in units of `MethodDescAlignment`.
        Size: u8,
        Count: u8,
        MethodTable: Addr,
        /// The upper part of the token, and flags.
        FlagsAndTokenRange: u16,
    }

    /// `InstantiatedMethodDesc` (method.hpp).
    InstantiatedMethodDesc {
        /// The arguments.
        PerInstInfo: Addr,
        Flags2: u16,
        NumGenericArgs: u16,
    }

    /// `StoredSigMethodDesc` (method.hpp).
    StoredSigMethodDesc {
        Sig: Addr,
        cSig: u32,
    }

    /// `DynamicMethodDesc` (method.hpp): a `DynamicMethod` or a stub.
    DynamicMethodDesc {
        MethodName: Addr,
    }

    /// The slot of a method that has none in the virtual method table (method.hpp). It and the next two follow a `MethodDesc`, each where a flag says so.
    NonVtableSlot {}

    /// The methods that a `MethodDesc` overrides.
    MethodImpl {}

    /// The slot of native code.
    NativeCodeSlot {}

    /// `AsyncMethodData` (method.hpp), .NET 11.
    AsyncMethodData {
        Flags: u32,
    }

    /// `MethodDescCodeData` (method.hpp).
    MethodDescCodeData {
        VersioningState: Addr,
        /// .NET 11: the tier of the default version.
        OptimizationTier: u32,
    }

    /// `MethodDescVersioningState` (codeversion.h).
    MethodDescVersioningState {
        MethodDesc: Addr,
        /// The first version that is not the default.
        NativeCodeVersionNode: Addr,
    }

    /// `NativeCodeVersionNode` (codeversion.h).
    NativeCodeVersionNode {
        Next: Addr,
        MethodDesc: Addr,
        NativeCode: Addr,
        OptimizationTier: u32,
    }

    /// `NativeCodeVersion` (codeversion.h).
    NativeCodeVersion {
        StorageKind: u32,
        MethodDescOrNode: Addr,
    }

    /// `CallCountingManager` (callcounting.h).
    CallCountingManager {
        /// An `SHash` of `CallCountingInfo`, by method.
        CallCountingHash: Inline,
    }

    /// `CallCountingInfo` (callcounting.h).
    CallCountingInfo {
        CodeVersion: Inline,
        Stage: u8,
    }

    /// `EEConfig` (eeconfig.h).
    EEConfig {
        JitMinOpts: u8,
        TieredPGO: u8,
        TieredPGO_InstrumentOnlyHotCode: u8,
    }

    /// `SHash` (shash.h): a hash table with open addressing.
    SHash {
        Table: Addr,
        TableSize: u32,
    }

    /// `FixupPrecodeData` (precode.h).
    FixupPrecodeData {
        MethodDesc: Addr,
    }

    /// `StubPrecodeData` (precode.h). .NET 10 keeps other things in the same place for stubs of other kinds.
    StubPrecodeData {
        MethodDesc = "MethodDesc|SecretParam": Addr,
    }

    /// `PlatformMetadata` (cdacplatformmetadata.hpp), .NET 10 and later.
    PlatformMetadata {
        PrecodeMachineDescriptor: Inline,
    }

    /// `PrecodeMachineDescriptor` (cdacplatformmetadata.hpp).
    PrecodeMachineDescriptor {
        StubCodePageSize: u32,
    }
}
